//! Durable purges: the purge list in each store's folder, and the thread that writes all lists. At
//! start-up, the lists show whether foxy may use the stored responses.

pub mod journal;
pub mod list;
pub mod series;
