//! Logs of HTTP transactions. A *transaction* is a client's request, its answer, and the fetch from
//! the origin. `ring` keeps transactions in a file of fixed size, `lines` reads access logs, and
//! `query` selects transactions by their fields. The caller opens the files.

pub mod field;
pub mod group;
pub mod histogram;
pub mod lines;
pub mod query;
pub mod ring;
pub mod selection;
pub mod transaction;
