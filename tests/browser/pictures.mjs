// Takes the screenshots of docs/tables.md: pictures.mjs REPORT FOLDER.
import { launch } from './page.mjs';

const [file, folder] = process.argv.slice(2);
const browser = await launch();
for (const [view, colorScheme, width, height] of [
  ['overview', 'light', 1280, 1000], ['mirrors', 'light', 1280, 620], ['hosts', 'light', 1000, 560],
  ['sets', 'light', 1280, 780], ['compare', 'dark', 1280, 760],
]) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme, offline: true });
  const page = await context.newPage();
  await page.goto(`file://${file}#${view}`);
  await page.waitForTimeout(50);
  if (view === 'sets') await page.locator('#set-list > details > summary').nth(1).click();
  if (view === 'mirrors') await page.locator('#mirror-table summary').first().click();
  await page.screenshot({ path: `${folder}/report-${view}.png` });
  await context.close();
}
await browser.close();
