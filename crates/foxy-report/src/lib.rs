//! Run records first, pictures second: what a run was, what it measured, how sure that is.
//! It reads no clock and no file; whoever runs something hands the facts in.

pub mod bootstrap;
pub mod chart;
pub mod comparison;
pub mod figure;
pub mod latency;
pub mod measurable;
pub mod number;
pub mod page;
pub mod record;
pub mod statistics;
pub mod table;
mod verdict;

pub use bootstrap::{Interval, Statistic};
pub use figure::{FigureRow, Place, Verdict, figure_table, scale_text};
pub use latency::Latencies;
pub use measurable::Measurable;
pub use page::Page;
pub use record::{Machine, Measure, Record, RequestClass, Setup, Subject, Timeline, write_records};
pub use statistics::Summary;
pub use table::Table;
