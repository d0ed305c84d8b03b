// Pages of `webtwin serve`: no error, no request but to the server, nothing wider than the page, nothing that axe-core finds.
import { strict as assert } from 'node:assert';
import { readFileSync } from 'node:fs';
import { chromium } from 'playwright-core';

const servers = process.argv.slice(2);
const axe = readFileSync('node_modules/axe-core/axe.min.js', 'utf8');
const rules = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice'];
const browser = await chromium.launch({ executablePath: process.env.BROWSER, args: ['--no-sandbox'] });
let looked = 0;

for (const server of servers) {
  for (const [colorScheme, width] of [['light', 1400], ['dark', 420]]) {
    // axe-core comes in by the debugger; the policy of the page is looked at below.
    const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme, bypassCSP: true });
    const page = await context.newPage();
    const wrong = [];
    page.on('console', said => ['error', 'warning'].includes(said.type()) && wrong.push(said.text()));
    page.on('pageerror', error => wrong.push(String(error)));
    page.on('dialog', dialog => { wrong.push(dialog.message()); dialog.dismiss(); });
    page.on('request', request => request.url().startsWith(server) || wrong.push(request.url()));
    const look = async () => {
      const where = `${page.url()} ${colorScheme} ${width}`;
      const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(over <= 0, `${where}: ${over} pixels wider than the page`);
      assert.equal(await page.locator('img, iframe, object, script').count(), 0, where);
      const links = await page.locator('a').evaluateAll(all => all.map(one => one.protocol));
      assert.ok(links.every(protocol => /^https?:$/.test(protocol)), `${where}: ${links}`);
      await page.evaluate(axe);
      const { violations } = await page.evaluate(only => axe.run(document, { runOnly: only }), rules);
      const told = violations.map(of => `${of.id}: ${of.nodes.slice(0, 3).map(node => node.html.slice(0, 160)).join(' | ')}`);
      assert.deepEqual(told, [], where);
      looked += 1;
    };
    // As a person goes: all sets, one of them, a page of it, the page beside another, and the page of a URL that is typed.
    await page.goto(server);
    await look();
    await page.locator('nav a[href="/sets"]').click();
    await look();
    await page.locator('main a[href^="/set/"]').first().click();
    await look();
    const [page_of_set, beside] = [page.locator('main a[href^="/page?"]').first(), page.locator('main a[href^="/compare?"]').first()];
    const url = await page_of_set.textContent();
    await beside.click();
    await look();
    await page.goBack();
    await page_of_set.click();
    await look();
    const collection = page.locator('main a[href^="/collection/"]');
    if (await collection.count() > 0) {
      await collection.first().click();
      await look();
    }
    await page.goto(server);
    await page.locator('input[name=url]').focus();
    await page.keyboard.type(url);
    await page.keyboard.press('Enter');
    await page.waitForURL(/[/]page[?]/);
    await look();
    assert.deepEqual(wrong, [], `${server} ${colorScheme} ${width}`);
    await context.close();
  }

  // By its policy no script runs at all.
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(server);
  const ran = await page.evaluate(() => {
    const script = document.createElement('script');
    script.textContent = 'window.foreign = true';
    document.body.append(script);
    return window.foreign === true;
  });
  assert.equal(ran, false, 'a foreign script ran');
  await context.close();
}
console.log(`${looked} served pages looked at`);
await browser.close();
