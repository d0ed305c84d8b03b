// Checks of every page: no error, no dialog, no request to other hosts, no content wider than the
// page, and no violation of axe-core's rules.
import { strict as assert } from 'node:assert';
import { readFileSync } from 'node:fs';
import { chromium } from 'playwright-core';

const axe = readFileSync('node_modules/axe-core/axe.min.js', 'utf8');
const rules = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice'];

/** Starts the browser that BROWSER names. */
export const launch = () => chromium.launch({ executablePath: process.env.BROWSER, args: ['--no-sandbox'] });

/** Opens a new page; `wrong` collects errors, including requests to hosts other than `allowed`. */
export async function open(browser, allowed, options) {
  // axe-core is injected by the debugger, which bypasses the page's policy, unless the policy itself is tested.
  const context = await browser.newContext({ viewport: { width: 1400, height: 900 }, bypassCSP: true, ...options });
  const page = await context.newPage();
  const wrong = [];
  page.on('console', said => ['error', 'warning'].includes(said.type()) && wrong.push(said.text()));
  page.on('pageerror', error => wrong.push(String(error)));
  page.on('dialog', dialog => { wrong.push(dialog.message()); dialog.dismiss(); });
  page.on('request', request => allowed.test(request.url()) || wrong.push(request.url()));
  return { page, wrong, close: () => context.close() };
}

/** Checks the visible content against the page width and axe-core's rules. */
export async function look(page, where) {
  const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(over <= 0, `${where}: ${over} pixels wider than the page`);
  if (!await page.evaluate(() => 'axe' in window)) await page.evaluate(axe);
  const { violations } = await page.evaluate(only => window.axe.run(document, { runOnly: only }), rules);
  const told = violations.map(of => `${of.id}: ${of.nodes.slice(0, 3).map(node => node.html.slice(0, 160)).join(' | ')}`);
  assert.deepEqual(told, [], where);
}

/** Tries to run an injected script, which the page's policy must block. */
export async function refuseForeignScript(page) {
  const ran = await page.evaluate(() => {
    const script = document.createElement('script');
    script.textContent = 'window.foreign = true';
    document.body.append(script);
    return window.foreign === true;
  });
  assert.equal(ran, false, 'a foreign script ran');
}
