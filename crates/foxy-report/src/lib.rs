//! Run records, and their presentation as tables, charts, pages and comparisons. The crate reads no
//! clock and no file. Read the module `record` first.

pub mod bootstrap;
pub mod chart;
pub mod comparison;
mod direction;
pub mod figure;
pub mod folder;
pub mod measurable;
pub mod number;
pub mod page;
pub mod record;
pub mod statistics;
pub mod table;

pub use bootstrap::{Interval, Statistic};
pub use figure::{FigureRow, Place, Verdict, figure_table, scale_text};
pub use measurable::Measurable;
pub use page::Page;
pub use record::{Machine, Measure, Record, RequestClass, Setup, Subject, Timeline, write_records};
pub use statistics::{Latencies, Summary};
pub use table::Table;
