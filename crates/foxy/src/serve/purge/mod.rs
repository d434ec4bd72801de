//! Durable purges: the list in each store's folder, the thread that appends to all lists, and the
//! decision at start-up whether what is stored can still be believed.

pub mod journal;
pub mod list;
pub mod series;
