//! Spans and log records that go to the collector together.

use super::attributes::{resource, scope, text_value};
use super::counts::OtlpSignal;
use super::queue::Telemetry;
use super::spans;
use crate::terminal::Level;
use foxy_base::{Random, WallTime};
use hyper::body::Bytes;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs, SeverityNumber};
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use prost::Message;

#[derive(Debug, Default)]
pub struct Batch {
    spans: Vec<Span>,
    records: Vec<LogRecord>,
}

/// The encoded spans or log records of a batch.
#[derive(Clone, Debug)]
pub struct EncodedBatch {
    pub signal: OtlpSignal,
    pub count: u64,
    pub body: Bytes,
}

impl Batch {
    pub fn add(&mut self, item: Telemetry, random: &mut Random) {
        match item {
            Telemetry::Request(transaction) => self.spans.extend(spans::of(&transaction, random)),
            Telemetry::Message { at, level, text } => self.records.push(record(at, level, text)),
        }
    }

    pub fn len(&self) -> usize {
        self.spans.len() + self.records.len()
    }

    /// Empties the batch, and returns its content in the form of the protocol.
    pub fn encode(&mut self) -> impl Iterator<Item = EncodedBatch> + use<> {
        let spans = std::mem::take(&mut self.spans);
        let records = std::mem::take(&mut self.records);
        let (signal, count) = (OtlpSignal::Spans, spans.len() as u64);
        let spans = (count > 0).then(|| {
            let body = traces(spans).encode_to_vec().into();
            EncodedBatch { signal, count, body }
        });
        let (signal, count) = (OtlpSignal::LogRecords, records.len() as u64);
        let records = (count > 0).then(|| {
            let body = logs(records).encode_to_vec().into();
            EncodedBatch { signal, count, body }
        });
        spans.into_iter().chain(records)
    }
}

fn traces(spans: Vec<Span>) -> ExportTraceServiceRequest {
    let scope_spans = vec![ScopeSpans { scope: Some(scope()), spans, ..ScopeSpans::default() }];
    let resource = Some(resource());
    let resource_spans = vec![ResourceSpans { resource, scope_spans, ..ResourceSpans::default() }];
    ExportTraceServiceRequest { resource_spans }
}

fn logs(log_records: Vec<LogRecord>) -> ExportLogsServiceRequest {
    let scope_logs = vec![ScopeLogs { scope: Some(scope()), log_records, ..ScopeLogs::default() }];
    let resource = Some(resource());
    let resource_logs = vec![ResourceLogs { resource, scope_logs, ..ResourceLogs::default() }];
    ExportLogsServiceRequest { resource_logs }
}

fn record(at: WallTime, level: Level, text: String) -> LogRecord {
    let (severity, name) = match level {
        Level::Error => (SeverityNumber::Error, "ERROR"),
        Level::Warning => (SeverityNumber::Warn, "WARN"),
        Level::Info => (SeverityNumber::Info, "INFO"),
    };
    let nanos = at.0.saturating_mul(1_000_000);
    LogRecord {
        time_unix_nano: nanos,
        observed_time_unix_nano: nanos,
        severity_number: severity.into(),
        severity_text: name.into(),
        body: Some(text_value(text)),
        ..LogRecord::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_becomes_a_log_record_of_its_severity() {
        let (mut batch, mut random) = (Batch::default(), Random::new(1));
        for level in [Level::Error, Level::Warning, Level::Info] {
            let text = "foxy: a disk is full".to_owned();
            batch.add(Telemetry::Message { at: WallTime(5), level, text }, &mut random);
        }
        assert_eq!(batch.len(), 3);
        let encoded: Vec<_> = batch.encode().collect();
        assert_eq!((encoded.len(), encoded[0].count, batch.len()), (1, 3, 0));
        let read = ExportLogsServiceRequest::decode(encoded[0].body.clone()).expect("a request");
        let records = &read.resource_logs[0].scope_logs[0].log_records;
        let severities: Vec<_> = records.iter().map(|record| record.severity_number).collect();
        assert_eq!(severities, [17, 13, 9]);
        assert_eq!(records[0].body, Some(text_value("foxy: a disk is full".into())));
        assert_eq!(records[0].time_unix_nano, 5_000_000);
    }
}
