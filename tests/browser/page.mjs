// What every page is held to: no error, no dialog, no foreign request, nothing wider than the page, nothing that axe-core finds.
import { strict as assert } from 'node:assert';
import { readFileSync } from 'node:fs';
import { chromium } from 'playwright-core';

const axe = readFileSync('node_modules/axe-core/axe.min.js', 'utf8');
const rules = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice'];

/** A browser, of the program that BROWSER names. */
export const launch = () => chromium.launch({ executablePath: process.env.BROWSER, args: ['--no-sandbox'] });

/** A page of its own; `wrong` gathers what must not happen, requests but to `allowed` among it. */
export async function open(browser, allowed, options) {
  // axe-core comes in by the debugger, past the page's policy, unless that policy is what is looked at.
  const context = await browser.newContext({ viewport: { width: 1400, height: 900 }, bypassCSP: true, ...options });
  const page = await context.newPage();
  const wrong = [];
  page.on('console', said => ['error', 'warning'].includes(said.type()) && wrong.push(said.text()));
  page.on('pageerror', error => wrong.push(String(error)));
  page.on('dialog', dialog => { wrong.push(dialog.message()); dialog.dismiss(); });
  page.on('request', request => allowed.test(request.url()) || wrong.push(request.url()));
  return { page, wrong, close: () => context.close() };
}

/** Holds what is shown to its width and to axe-core's rules. */
export async function look(page, where) {
  const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(over <= 0, `${where}: ${over} pixels wider than the page`);
  if (!await page.evaluate(() => 'axe' in window)) await page.evaluate(axe);
  const { violations } = await page.evaluate(only => window.axe.run(document, { runOnly: only }), rules);
  const told = violations.map(of => `${of.id}: ${of.nodes.slice(0, 3).map(node => node.html.slice(0, 160)).join(' | ')}`);
  assert.deepEqual(told, [], where);
}

/** Tries to run a script of somebody else; the page's policy must not let it. */
export async function refuseForeignScript(page) {
  const ran = await page.evaluate(() => {
    const script = document.createElement('script');
    script.textContent = 'window.foreign = true';
    document.body.append(script);
    return window.foreign === true;
  });
  assert.equal(ran, false, 'a foreign script ran');
}
