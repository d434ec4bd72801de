//! The access log: takes the proxy's records, makes lines of them on the worker's thread, and has
//! them written elsewhere. Opened at start-up, opened anew on SIGHUP.

use super::access_line::AccessFormat;
use super::log_queue::{LogQueue, LogWriter, Sink};
use crate::failure::Failure;
use crate::settings::Settings;
use crate::settings::values::Output;
use crate::terminal::{self, Level};
use foxy_proxy::request::access::{AccessRecord, AccessSink};
use std::cell::RefCell;
use std::fs::OpenOptions;
use std::path::Path;
use std::sync::Arc;

/// Takes records on any worker's thread.
#[derive(Debug)]
pub struct AccessLog {
    format: AccessFormat,
    queue: Arc<LogQueue>,
}

thread_local! {
    static LINE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl AccessSink for AccessLog {
    fn record(&self, record: &AccessRecord<'_>) {
        LINE.with_borrow_mut(|line| {
            line.clear();
            self.format.write(record, line);
            self.queue.push(line);
        });
    }
}

/// An access log that is being written.
#[derive(Debug)]
pub struct OpenLog {
    /// What the proxy gives its records to.
    pub sink: Arc<AccessLog>,
    /// Where lines wait; it counts those that were lost.
    pub queue: Arc<LogQueue>,
    /// The thread that writes them.
    pub writer: LogWriter,
}

/// Opens the access log; none when it is off.
///
/// # Errors
/// The file cannot be opened for appending, or the writer's thread not started.
pub fn open(settings: &Settings) -> Result<Option<OpenLog>, Failure> {
    let sink: Sink = match &settings.operation.access_log {
        Output::Off => return Ok(None),
        Output::Standard => Box::new(std::io::stdout()),
        Output::File(path) => append(path).map_err(|error| {
            Failure::Unusable(format!(
                "cannot open the access log {} (--access-log): {error}; \
                 name a file this user may write, `-` for standard output, or `off`",
                path.display()
            ))
        })?,
    };
    let queue = Arc::new(LogQueue::new(settings.network.workers));
    let format = AccessFormat::named(settings.operation.access_log_format)
        .expect("the table's words are the formats");
    let sink_of_records = Arc::new(AccessLog { format, queue: Arc::clone(&queue) });
    let output = settings.operation.access_log.clone();
    let writer = LogWriter::start(Arc::clone(&queue), sink, Box::new(move || reopen(&output)));
    let writer = writer
        .map_err(|error| Failure::Failed(format!("cannot start the log's writer: {error}")))?;
    Ok(Some(OpenLog { sink: sink_of_records, queue, writer }))
}

/// Opens the place anew. A failure is reported, and lines go on to where they went before.
fn reopen(output: &Output) -> std::io::Result<Sink> {
    match output {
        Output::Off | Output::Standard => Ok(Box::new(std::io::stdout())),
        Output::File(path) => append(path).inspect_err(|error| {
            let text = format!(
                "cannot open the access log {} anew: {error}; it stays as it is",
                path.display()
            );
            terminal::report(Level::Warning, &text);
        }),
    }
}

fn append(path: &Path) -> std::io::Result<Sink> {
    Ok(Box::new(OpenOptions::new().append(true).create(true).open(path)?))
}
