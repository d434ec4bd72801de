//! Sends data to the collector, and judges its answers as OTLP/HTTP demands.

use super::batch::EncodedBatch;
use super::counts::OtlpSignal;
use crate::serve::http_client::{AnyError, send};
use foxy_proxy::upstream::{OriginServer, OriginTls};
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use hyper::{Request, Response};
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceResponse;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use prost::Message;
use std::time::Duration;
use tokio::time::timeout;

/// Longest time for a request and its answer. OpenTelemetry's default.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// The collector's reaction to data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// The collector has the data, except for `refused` spans or log records.
    Accepted { refused: u64 },
    /// The collector refuses the data for ever.
    Refused(String),
    /// Another attempt may succeed, after the given time.
    Again(String, Option<Duration>),
}

#[derive(Debug)]
pub struct Collector {
    pub server: OriginServer,
    pub tls: OriginTls,
}

impl Collector {
    pub async fn send(&self, batch: &EncodedBatch) -> Delivery {
        match timeout(REQUEST_TIMEOUT, self.answer(batch)).await {
            Ok(Ok(answer)) => judge(&answer, batch),
            Ok(Err(why)) => Delivery::Again(why.to_string(), None),
            Err(_) => Delivery::Again("no answer in time".into(), None),
        }
    }

    async fn answer(&self, batch: &EncodedBatch) -> Result<Response<Bytes>, AnyError> {
        let path = match batch.signal {
            OtlpSignal::Spans => "v1/traces",
            OtlpSignal::LogRecords => "v1/logs",
        };
        let request = Request::post(format!("{}/{path}", self.server))
            .header(CONTENT_TYPE, "application/x-protobuf")
            .header(USER_AGENT, concat!("foxy/", env!("CARGO_PKG_VERSION")))
            .body(batch.body.clone())?;
        send(&self.tls, request).await
    }
}

/// Judges an answer. An answer with 200 that is no OTLP comes from another server than a collector.
fn judge(answer: &Response<Bytes>, batch: &EncodedBatch) -> Delivery {
    let status = answer.status().as_u16();
    let after =
        answer.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
    match (status, refused(answer.body(), batch.signal)) {
        (200..=299, Some(refused)) => Delivery::Accepted { refused: refused.min(batch.count) },
        (200..=299, None) => Delivery::Refused("its answer is not OTLP".into()),
        (429 | 502..=504, _) => {
            Delivery::Again(format!("it answers {status}"), after.map(Duration::from_secs))
        }
        _ => Delivery::Refused(format!("it answers {status}")),
    }
}

/// Reads the number of refused spans or log records. Returns `None` if the answer is malformed.
fn refused(body: &Bytes, signal: OtlpSignal) -> Option<u64> {
    let refused = match signal {
        OtlpSignal::Spans => {
            let answer = ExportTraceServiceResponse::decode(body.clone()).ok()?;
            answer.partial_success.map_or(0, |partial| partial.rejected_spans)
        }
        OtlpSignal::LogRecords => {
            let answer = ExportLogsServiceResponse::decode(body.clone()).ok()?;
            answer.partial_success.map_or(0, |partial| partial.rejected_log_records)
        }
    };
    Some(refused.try_into().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use opentelemetry_proto::tonic::collector::trace::v1::ExportTracePartialSuccess;

    #[test]
    fn answers_are_judged_as_the_protocol_demands() {
        let partial = |rejected_spans| {
            let partial = ExportTracePartialSuccess { rejected_spans, error_message: "no".into() };
            ExportTraceServiceResponse { partial_success: Some(partial) }.encode_to_vec()
        };
        let batch = EncodedBatch { signal: OtlpSignal::Spans, count: 5, body: Bytes::new() };
        let again = |text: &str, seconds: Option<u64>| {
            Delivery::Again(text.to_owned(), seconds.map(Duration::from_secs))
        };
        let refused = |text: &str| Delivery::Refused(text.to_owned());
        for (status, after, body, expected) in [
            (200, "", Vec::new(), Delivery::Accepted { refused: 0 }),
            (200, "", partial(2), Delivery::Accepted { refused: 2 }),
            (200, "", partial(900), Delivery::Accepted { refused: 5 }),
            (200, "", partial(-1), Delivery::Accepted { refused: 0 }),
            (200, "", b"<html>".to_vec(), refused("its answer is not OTLP")),
            (400, "", Vec::new(), refused("it answers 400")),
            (301, "", Vec::new(), refused("it answers 301")),
            (429, "7", Vec::new(), again("it answers 429", Some(7))),
            (503, "soon", Vec::new(), again("it answers 503", None)),
        ] {
            let answer = Response::builder().status(status).header(RETRY_AFTER, after);
            let answer = answer.body(body.into()).expect("an answer");
            assert_eq!(judge(&answer, &batch), expected, "{status}");
        }
    }
}
