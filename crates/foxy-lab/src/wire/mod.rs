//! The connections that load and LEAP share: TLS, HTTP/2 streams, answers of the lab's own, timers,
//! and the fields by which the lab knows its requests and objects.

pub(crate) mod alarm;
pub(crate) mod key;
pub(crate) mod loss;
pub(crate) mod numbers;
pub(crate) mod one_stream;
pub(crate) mod out;
pub(crate) mod patience;
pub(crate) mod streams;
pub mod tls;

/// The request field with the request's number. The origin repeats the number in its answer, so an
/// answer with another number came from a cache.
pub const REQUEST_ID: &str = "X-Foxy-Request";

/// The answer field with which the origin names the object and its version: `KEY.VERSION`.
pub const OBJECT_ID: &str = "X-Foxy-Object";
