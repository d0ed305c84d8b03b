// Pages of `webtwin serve`: no error, no request but to the server, nothing wider than the page, nothing that axe-core finds.
import { strict as assert } from 'node:assert';
import { launch, look, open, refuseForeignScript } from './page.mjs';

const servers = process.argv.slice(2);
const browser = await launch();
let looked = 0;

for (const server of servers) {
  const within = new RegExp(`^${server.replaceAll('.', '[.]')}`);
  for (const [colorScheme, width] of [['light', 1400], ['dark', 420]]) {
    const { page, wrong, close } = await open(browser, within, { viewport: { width, height: 900 }, colorScheme });
    const see = async () => {
      const where = `${page.url()} ${colorScheme} ${width}`;
      assert.equal(await page.locator('img, iframe, object, script').count(), 0, where);
      const links = await page.locator('a').evaluateAll(all => all.map(one => one.protocol));
      assert.ok(links.every(protocol => /^https?:$/.test(protocol)), `${where}: ${links}`);
      await look(page, where);
      looked += 1;
    };
    // As a person goes: all sets, one of them, a page of it, the page beside another, and the page of a URL that is typed.
    await page.goto(server);
    await see();
    await page.locator('nav a[href="/sets"]').click();
    await see();
    await page.locator('main a[href^="/set/"]').first().click();
    await see();
    const [page_of_set, beside] = [page.locator('main a[href^="/page?"]').first(), page.locator('main a[href^="/compare?"]').first()];
    const url = await page_of_set.textContent();
    await beside.click();
    await see();
    await page.goBack();
    await page_of_set.click();
    await see();
    const collection = page.locator('main a[href^="/collection/"]');
    if (await collection.count() > 0) {
      await collection.first().click();
      await see();
    }
    await page.goto(server);
    await page.locator('input[name=url]').focus();
    await page.keyboard.type(url);
    await page.keyboard.press('Enter');
    await page.waitForURL(/[/]page[?]/);
    await see();
    assert.deepEqual(wrong, [], `${server} ${colorScheme} ${width}`);
    await close();
  }

  // By its policy no script runs at all.
  const { page, close } = await open(browser, within, { bypassCSP: false });
  await page.goto(server);
  await refuseForeignScript(page);
  await close();
}
console.log(`${looked} served pages looked at`);
await browser.close();
