//! The program that turns documents made for paper into text, each within its own process.

use webtwin_base::job;
use webtwin_pages::pages;

#[path = "../../src/printed/mod.rs"]
pub mod printed;
