// Checks of the pages of `webtwin serve`: no error, requests to the server only, no content wider than
// the page, no violation of axe-core's rules, operation by keyboard and without scripts, and the same
// comparison as in the report.
import { strict as assert } from 'node:assert';
import { launch, look, open, refuseForeignScript } from './page.mjs';

const servers = process.argv.slice(2);
const browser = await launch();
let looked = 0;

for (const server of servers) {
  const within = new RegExp(`^${server.replaceAll('.', '[.]')}`);
  for (const [colorScheme, width] of [['light', 1400], ['dark', 1400], ['light', 420], ['dark', 420]]) {
    const { page, wrong, close } = await open(browser, within, { viewport: { width, height: 900 }, colorScheme });
    const see = async view => {
      const where = `${page.url()} ${colorScheme} ${width}`;
      assert.equal(await page.locator('img, iframe, object, script').count(), 0, where);
      assert.equal(await page.locator('h1').count(), 1, where);
      const current = await page.locator('nav.views [aria-current=page]').allTextContents();
      assert.deepEqual(current, view === undefined ? [] : [view], where);
      const links = await page.locator('a').evaluateAll(all => all.map(one => one.protocol));
      assert.ok(links.every(protocol => /^https?:$/.test(protocol)), `${where}: ${links}`);
      const background = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
      assert.equal(background, colorScheme === 'dark' ? 'rgb(15, 20, 27)' : 'rgb(246, 247, 249)', where);
      await look(page, where);
      looked += 1;
    };
    const click = async (selector, view) => {
      await page.locator(selector).first().click();
      await see(view);
    };
    // The path of a user: mirrors, all sets, one set, a page of it, and its comparison with another page.
    await page.goto(server);
    await see('Overview');
    await click('nav a[href="/collections"]', 'Mirrors');
    const collection = page.locator('main a[href^="/collection/"]');
    if (await collection.count() > 0) await click('main a[href^="/collection/"]', 'Mirrors');
    await click('nav a[href="/sets"]', 'Sets');
    const sizes = await page.locator('tbody tr td:first-child').allTextContents();
    assert.deepEqual(sizes, [...sizes].sort((x, y) => y.replace(',', '') - x.replace(',', '')));
    const url = await page.locator('main .sub a').last().textContent();
    await page.locator('main input[name=q]').fill(url);
    await page.keyboard.press('Enter');
    await page.waitForURL(/q=/);
    await see('Sets');
    assert.ok((await page.locator('main .sub').allTextContents()).includes(url), `${url} is not found by its words`);
    await click('main a[href^="/set/"]', 'Sets');
    await click('main a[href^="/compare?"]', 'Compare');
    assert.equal(await page.locator('.sides .side').count(), 2);
    assert.equal(await page.locator('.diff').count() + await page.locator('.tile', { hasText: /^yessame text/ }).count(), 1);
    await page.goBack();
    await click('main a[href^="/page?"]', 'Look up');
    // Typed input: the URL of a page, a URL without a page, and text that is not a URL.
    for (const [typed, answer] of [[url, /^(fetch|skip)$/], ['http://never.example/', /^unknown$/], ['javascript:alert(1)', /^reject$/]]) {
      await page.goto(server);
      await page.locator('input[name=url]').focus();
      await page.keyboard.type(typed);
      await page.keyboard.press('Enter');
      await page.waitForURL(/[/]page[?]/);
      assert.match(await page.locator('.verdict b').textContent(), answer);
      await see('Look up');
    }
    assert.deepEqual(wrong, [], `${server} ${colorScheme} ${width}`);
    // A problem is also a page. The console reports its status.
    await page.goto(`${server}/set/0000000000000000`);
    await see();
    await close();
  }

  // The policy of the page blocks all scripts.
  const { page, close } = await open(browser, within, { bypassCSP: false });
  await page.goto(server);
  await refuseForeignScript(page);
  await close();

  // Without scripts, by keyboard: to the content, through the views, into the form, and to its results.
  const plain = await open(browser, within, { javaScriptEnabled: false });
  await plain.page.goto(`${server}/sets`);
  const focused = () => plain.page.locator(':focus').first();
  await plain.page.keyboard.press('Tab');
  assert.equal(await focused().textContent(), 'To the content');
  await plain.page.keyboard.press('Enter');
  await plain.page.keyboard.press('Tab');
  assert.equal(await focused().getAttribute('name'), 'q');
  await plain.page.keyboard.type('example');
  await plain.page.keyboard.press('Tab');
  assert.equal(await focused().textContent(), 'Find');
  await plain.page.keyboard.press('Enter');
  await plain.page.waitForURL(/q=example/);
  assert.ok(await plain.page.locator('main a[href^="/set/"]').count() > 0);
  assert.deepEqual(plain.wrong, []);
  await plain.close();
}
console.log(`${looked} served pages checked`);
await browser.close();
