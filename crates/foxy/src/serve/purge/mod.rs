//! Durable purges: the list in each store's folder, the thread that writes all lists, and the
//! decision at start-up whether stored responses can be trusted.

pub mod journal;
pub mod list;
pub mod series;
