// Checks every view of each report, light and dark, wide and narrow: no error, no request, no content
// wider than the page, no violation of axe-core's rules, operation by keyboard, and completeness
// without scripts.
import { strict as assert } from 'node:assert';
import { readFileSync } from 'node:fs';
import { launch, look, open, refuseForeignScript } from './page.mjs';

// Arguments: the folder for saved decisions, then the reports.
const [saved, ...files] = process.argv.slice(2);
const browser = await launch();

/** Opens the page of a report without a network. */
async function opened(file, options) {
  const report = await open(browser, /^(file|data):/, { offline: true, ...options });
  await report.page.goto('file://' + file);
  return report;
}

for (const [number, file] of files.entries()) {
  let views;
  for (const colorScheme of ['light', 'dark']) {
    for (const width of [1400, 420]) {
      // Only half of the combinations for the other reports, since colours do not depend on the contents.
      if (number > 0 && (colorScheme === 'light') !== (width === 1400)) continue;
      const { page, wrong, close } = await opened(file, { viewport: { width, height: 900 }, colorScheme });
      views = await page.locator('nav.views a').evaluateAll(all => all.map(one => one.hash.slice(1)));
      assert.ok(views.length >= 2 && views.at(-1) === 'run', `${views}`);
      for (const view of views) {
        const where = `${file} ${view} ${colorScheme} ${width}`;
        await page.locator(`nav.views a[href="#${view}"]`).click();
        await page.waitForTimeout(30);
        const shown = await page.locator('section.view:visible').evaluateAll(all => all.map(one => one.id));
        assert.deepEqual(shown, [view], where);
        // Opens everything that can be unfolded, so that it is also checked.
        await page.locator(`#${view}`).evaluate(section => section.querySelectorAll('details').forEach((one, n) => { one.open = n < 6; }));
        await look(page, where);
      }
      assert.deepEqual(wrong, [], `${file} ${colorScheme} ${width}`);
      await close();
    }
  }

  // The policy of the page allows its own script only.
  const { page, wrong, close } = await opened(file, { bypassCSP: false });
  assert.match(await page.title(), /webtwin report$/);
  await refuseForeignScript(page);
  assert.ok(wrong.some(said => /Content Security Policy/.test(said)));
  assert.equal(await page.locator('a:not([href^="#"]):not([href^="http://"]):not([href^="https://"])').count(), 0);
  assert.equal(await page.locator('img, iframe, object, form').count(), 0);
  await close();

  // Without scripts all views exist, and the counts of tables are the same as with scripts.
  const plain = await opened(file, { javaScriptEnabled: false });
  assert.equal(await plain.page.locator('section.view:visible').count(), views.length);
  assert.equal(await plain.page.locator('input:visible, button:visible, aside').count(), 0);
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

// Decisions by keyboard, under the policy of the page: on a pair of a set, on a pair side by side, on
// copies to keep, and their file.
const decided = await opened(files[0], { bypassCSP: false, acceptDownloads: true });
const on = decided.page;
const press = async button => { await button.focus(); await on.keyboard.press('Enter'); };
await on.locator('nav.views a[href="#sets"]').click();
assert.equal(await on.locator('.decisions button:enabled').count(), 0);
const set = on.locator('#set-list > details').first();
const before = await set.evaluate(item => item.open);
if (!before) await press(set.locator('summary').first());
await set.locator('[data-mark=pages] button').first().waitFor();
await on.locator('.decisions input').fill('read\tby hand');
const links = set.locator('details.data');
await press(links.locator('summary'));
const first_link = links.locator('tbody tr').first();
await press(first_link.getByRole('button', { name: 'not the same' }));
const pressed = within => within.locator('[aria-pressed=true]').allTextContents();
assert.deepEqual(await pressed(first_link), ['not the same']);
// In another set, since the page of this pair may be in no set once the pair is rejected.
const other = on.locator('#set-list > details').nth(1);
if (!await other.evaluate(item => item.open)) await press(other.locator('summary').first());
await other.locator('[data-mark=pages] button').first().waitFor();
const copies = other.locator('[data-mark=pages] tbody tr');
for (const copy of [0, 1, 1, 1]) await press(copies.nth(copy).getByRole('button'));
assert.deepEqual(await pressed(other.locator('[data-mark=pages]')), ['keep this']);
assert.deepEqual(await pressed(copies.nth(1)), ['keep this']);
await on.locator('nav.views a[href="#compare"]').click();
const pair = on.locator('#compare details.item').last();
if (!await pair.evaluate(item => item.open)) await press(pair.locator('summary').first());
await pair.getByRole('button', { name: 'unsure' }).waitFor();
await press(pair.getByRole('button', { name: 'unsure' }));
await press(pair.getByRole('button', { name: 'same', exact: true }));
assert.equal(await on.locator('.decisions .count').textContent(), '3 decisions');
const [download] = await Promise.all([on.waitForEvent('download'), press(on.getByRole('button', { name: 'Save decisions' }))]);
assert.equal(download.suggestedFilename(), 'decisions.tsv');
await download.saveAs(saved);
const [named, ...rows] = readFileSync(saved, 'utf8').trimEnd().split('\n').map(row => row.split('\t'));
assert.deepEqual(named, ['url_a', 'url_b', 'tag', 'note']);
assert.ok(rows.every(row => row.length === 4 && row[3] === 'read by hand'), JSON.stringify(rows));
assert.deepEqual(rows.map(row => row[2]), ['false', 'keep', 'true']);
// Decisions are restored when the page is reloaded, and removed on request.
await on.reload();
assert.equal(await on.locator('.decisions .count').textContent(), '3 decisions');
await press(on.getByRole('button', { name: 'Delete decisions' }));
assert.equal(await on.locator('.decisions .count').textContent(), '0 decisions');
assert.deepEqual(decided.wrong, []);
await decided.close();

// A circle links to its mirror, which is unfolded.
const linked = await opened(files[0], {});
await linked.page.locator('svg a[href^="#mirror-"]').first().click();
await linked.page.waitForTimeout(30);
assert.equal(await linked.page.locator('section.view:visible').getAttribute('id'), 'mirrors');
assert.equal(await linked.page.locator('#mirror-table details[open]').count(), 1);
const began = await linked.page.evaluate(() => performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd);
console.log(`${files.length} reports checked; the first opened in ${Math.round(began)} ms`);
await linked.close();
await browser.close();
