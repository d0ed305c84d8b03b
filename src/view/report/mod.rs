//! Report of a result as one self-contained HTML page.
//!
//! [`gather`] reads the tables of a result into the types of [`contract`], which are also written
//! as `report.json`. [`views`] generates the page from these: equal tables yield equal bytes.
//! [`charts`] draws. [`markup`] has the components that the pages of `webtwin serve` share.
//! [`html`] guarantees that crawled text is escaped.

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
pub use gather::{ReportOptions, gather as read, has_pages};
pub use views::{outline_page, page};
