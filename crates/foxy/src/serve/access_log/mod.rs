//! The access log. The worker that served a request formats the line. A separate thread writes the
//! lines. On SIGHUP and SIGUSR1 foxy opens the file again.

mod line;
pub mod queue;
pub mod refused_destinations;
pub mod transactions;

use crate::failure::{Failure, unwritten};
use crate::serve::otlp::{self, OtlpExporter};
use crate::settings::Settings;
use crate::settings::values::Output;
use crate::terminal::{self, Level};
use foxy_proxy::request::access::{AccessRecord, AccessSink};
use line::AccessFormat;
use queue::{LogQueue, LogWriter, Sink};
use rustix::fs::{Access, access};
use std::cell::RefCell;
use std::fs::OpenOptions;
use std::path::Path;
use std::sync::Arc;
use transactions::OpenTransactionLog;

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
            self.queue.push(record.end, line);
        });
    }
}

/// The logs of requests, and the exporter of traces. Drop closes them in the order of the fields.
#[derive(Debug)]
pub struct OpenLogs {
    pub access: Option<OpenLog>,
    pub transactions: Option<OpenTransactionLog>,
    pub otlp: Option<OtlpExporter>,
}

impl OpenLogs {
    pub fn open(settings: &Settings) -> Result<Self, Failure> {
        let otlp = otlp::open(settings)?;
        let export = otlp.as_ref().map(OtlpExporter::queue);
        let transactions = transactions::open(settings, export)?;
        Ok(Self { access: open(settings)?, transactions, otlp })
    }

    /// Returns the receivers of access records.
    pub fn sinks(&self) -> impl Iterator<Item = Arc<dyn AccessSink>> {
        let log = self.access.as_ref().map(|log| Arc::clone(&log.sink) as Arc<dyn AccessSink>);
        let ring = self.transactions.as_ref();
        let ring = ring.map(|ring| Arc::clone(&ring.sink) as Arc<dyn AccessSink>);
        log.into_iter().chain(ring)
    }
}

#[derive(Debug)]
pub struct OpenLog {
    pub sink: Arc<AccessLog>,
    pub queue: Arc<LogQueue>,
    pub writer: LogWriter,
}

/// Opens the access log of the settings. Returns `None` if the setting `access-log` is `off`.
fn open(settings: &Settings) -> Result<Option<OpenLog>, Failure> {
    let output = settings.operation.access_log.clone();
    let file: Sink = match &output {
        Output::Off => return Ok(None),
        Output::Standard => Box::new(std::io::stdout()),
        Output::File(path) => append(path).map_err(|error| cannot_open(path, &error))?,
    };
    let queue = Arc::new(LogQueue::new(settings.network.workers));
    let format = AccessFormat::named(settings.operation.access_log_format)
        .expect("the setting's words are the formats");
    let sink = Arc::new(AccessLog { format, queue: Arc::clone(&queue) });
    let writer = LogWriter::start(Arc::clone(&queue), file, Box::new(move || reopen(&output)))
        .map_err(|error| {
            Failure::Failed(format!("cannot start the thread that writes the access log: {error}"))
        })?;
    Ok(Some(OpenLog { sink, queue, writer }))
}

fn cannot_open(path: &Path, error: &std::io::Error) -> Failure {
    let otherwise = "name a file this user may write, `-` for standard output, or `off`";
    let why = unwritten(error, otherwise);
    Failure::Unusable(format!(
        "cannot open the access log {} (--access-log): {why}",
        path.display()
    ))
}

/// Tries whether the access log can be opened. Does not create its file.
pub fn try_out(settings: &Settings) -> Result<(), Failure> {
    let Output::File(path) = &settings.operation.access_log else { return Ok(()) };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let place = if path.exists() { path } else { folder.unwrap_or(Path::new(".")) };
    access(place, Access::WRITE_OK).map_err(|error| cannot_open(path, &error.into()))
}

/// Opens the output again. If that fails, the caller keeps the old output, and this function prints
/// a warning.
fn reopen(output: &Output) -> std::io::Result<Sink> {
    match output {
        Output::Off | Output::Standard => Ok(Box::new(std::io::stdout())),
        Output::File(path) => append(path).inspect_err(|error| {
            let text = format!(
                "cannot open the access log {} again: {error}; foxy continues with the old file",
                path.display()
            );
            terminal::report(Level::Warning, &text);
        }),
    }
}

fn append(path: &Path) -> std::io::Result<Sink> {
    Ok(Box::new(OpenOptions::new().append(true).create(true).open(path)?))
}
