// Every view of each report, light and dark, wide and narrow: no error, no request, nothing wider than the page, nothing that
// axe-core finds, all of it by keyboard, and whole without a script.
import { strict as assert } from 'node:assert';
import { readFileSync } from 'node:fs';
import { chromium } from 'playwright-core';

const files = process.argv.slice(2);
const axe = readFileSync('node_modules/axe-core/axe.min.js', 'utf8');
const views = ['overview', 'mirrors', 'hosts', 'sets', 'compare', 'skip', 'run'];
const rules = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice'];
const browser = await chromium.launch({ executablePath: process.env.BROWSER, args: ['--no-sandbox'] });

/** A page of the report; `wrong` gathers what must not happen. */
async function opened(file, options) {
  const context = await browser.newContext({ viewport: { width: 1400, height: 900 }, offline: true, bypassCSP: true, ...options });
  const page = await context.newPage();
  const wrong = [];
  page.on('console', said => ['error', 'warning'].includes(said.type()) && wrong.push(said.text()));
  page.on('pageerror', error => wrong.push(String(error)));
  page.on('dialog', dialog => { wrong.push(dialog.message()); dialog.dismiss(); });
  page.on('request', request => /^(file|data):/.test(request.url()) || wrong.push(request.url()));
  await page.goto('file://' + file);
  return { page, wrong, close: () => context.close() };
}

for (const [number, file] of files.entries()) {
  for (const colorScheme of ['light', 'dark']) {
    for (const width of [1400, 420]) {
      // Of the others, half of the combinations: colours do not depend on what pages say.
      if (number > 0 && (colorScheme === 'light') !== (width === 1400)) continue;
      const { page, wrong, close } = await opened(file, { viewport: { width, height: 900 }, colorScheme });
      await page.evaluate(axe);
      for (const view of views) {
        const where = `${file} ${view} ${colorScheme} ${width}`;
        await page.locator(`nav.views a[href="#${view}"]`).click();
        await page.waitForTimeout(30);
        const shown = await page.locator('section.view:visible').evaluateAll(all => all.map(one => one.id));
        assert.deepEqual(shown, [view], where);
        // Open what can be opened, so that it is looked at as well.
        await page.locator(`#${view}`).evaluate(section => section.querySelectorAll('details').forEach((one, n) => { one.open = n < 6; }));
        const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        assert.ok(over <= 0, `${where}: ${over} pixels wider than the page`);
        const { violations } = await page.evaluate(only => axe.run(document, { runOnly: only }), rules);
        const told = violations.map(of => `${of.id}: ${of.nodes.slice(0, 3).map(node => node.html.slice(0, 160)).join(' | ')}`);
        assert.deepEqual(told, [], where);
      }
      assert.deepEqual(wrong, [], `${file} ${colorScheme} ${width}`);
      await close();
    }
  }

  // By its policy no script runs but its own.
  const { page, wrong, close } = await opened(file, { bypassCSP: false });
  assert.match(await page.title(), /webtwin report$/);
  const ran = await page.evaluate(() => {
    const script = document.createElement('script');
    script.textContent = 'window.foreign = true';
    document.body.append(script);
    return window.foreign === true;
  });
  assert.equal(ran, false, 'a foreign script ran');
  assert.ok(wrong.some(said => /Content Security Policy/.test(said)));
  assert.equal(await page.locator('a:not([href^="#"]):not([href^="http://"]):not([href^="https://"])').count(), 0);
  assert.equal(await page.locator('img, iframe, object, form').count(), 0);
  await close();

  // Without a script all views are there, and what is told of a table is what is told with one.
  const plain = await opened(file, { javaScriptEnabled: false });
  assert.equal(await plain.page.locator('section.view:visible').count(), views.length);
  assert.equal(await plain.page.locator('input:visible, button:visible').count(), 0);
  await plain.close();
}

// By keyboard: to the content, to a view, into a table and its order, into a filter.
const { page, wrong, close } = await opened(files[0], {});
await page.keyboard.press('Tab');
assert.equal(await page.evaluate(() => document.activeElement.textContent), 'To the content');
await page.keyboard.press('Tab');
assert.equal(await page.evaluate(() => document.activeElement.id), 'theme');
await page.keyboard.press('Enter');
assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), 'dark');
await page.keyboard.press('Tab');
await page.keyboard.press('Tab');
await page.keyboard.press('Enter');
await page.waitForTimeout(30);
assert.equal(await page.locator('section.view:visible').getAttribute('id'), 'mirrors');
const first = page.locator('#mirror-table tbody').first();
const most = await first.getAttribute('id');
const head = page.locator('#mirror-table th', { hasText: 'may be skipped' });
await head.locator('button').focus();
await page.keyboard.press('Enter');
assert.equal(await head.getAttribute('aria-sort'), 'ascending');
assert.notEqual(await first.getAttribute('id'), most);
await page.keyboard.press('Enter');
assert.equal(await first.getAttribute('id'), most);
await page.locator('[data-filter=mirror-table]').focus();
await page.keyboard.type('no such mirror');
assert.equal(await page.locator('#mirror-table tbody:visible').count(), 0);
assert.match(await page.locator('[data-count=mirror-table]').textContent(), /^0 of \d+$/);
await page.goto(`file://${files[0]}#${most}`);
await page.waitForTimeout(30);
assert.deepEqual(wrong, []);
await close();

// A circle leads to its mirror, unfolded.
const linked = await opened(files[0], {});
await linked.page.locator('svg a[href^="#mirror-"]').first().click();
await linked.page.waitForTimeout(30);
assert.equal(await linked.page.locator('section.view:visible').getAttribute('id'), 'mirrors');
assert.equal(await linked.page.locator('#mirror-table details[open]').count(), 1);
const began = await linked.page.evaluate(() => performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd);
console.log(`${files.length} reports looked at; the first opened in ${Math.round(began)} ms`);
await linked.close();
await browser.close();
