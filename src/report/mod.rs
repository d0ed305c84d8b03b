//! A result made to be looked at: one HTML page that needs nothing but itself.

pub mod html;
