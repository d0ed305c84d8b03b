//! A result made to be looked at: one HTML page that needs nothing but itself.
//!
//! [`gather`] reads the tables of a result, and [`contract`] is what it makes of them, `report.json`. The page of [`views`] is a function
//! of that: with the same tables it has the same bytes. [`charts`] draws; [`markup`] has the pieces that the pages of `webtwin serve` share; [`html`] sees to it that what was crawled
//! becomes text, whatever it says.

pub mod charts;
pub mod contract;
pub mod figures;
pub mod gather;
pub mod html;
pub mod markup;
pub mod side_by_side;
mod top;
pub mod views;

pub use gather::parts::outline;
pub use gather::{Wanted, gather as read, has_pages};
pub use views::{outline_page, page};
