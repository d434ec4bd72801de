//! Attributes of spans, log records and the process that sends them.

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::resource::v1::Resource;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A list of attributes. Values that a log does not have are left out.
#[derive(Debug, Default)]
pub struct Attributes(pub Vec<KeyValue>);

impl Attributes {
    /// Adds an attribute with a text, unless the text is empty.
    pub fn text(&mut self, key: &str, text: &str) {
        if !text.is_empty() {
            self.add(key, Value::StringValue(text.to_owned()));
        }
    }

    /// Adds an attribute with a number, if the number is known.
    pub fn number(&mut self, key: &str, number: Option<impl Into<u64>>) {
        if let Some(number) = number.and_then(|number| i64::try_from(number.into()).ok()) {
            self.add(key, Value::IntValue(number));
        }
    }

    fn add(&mut self, key: &str, value: Value) {
        let value = Some(AnyValue { value: Some(value) });
        self.0.push(KeyValue { key: key.to_owned(), value, ..KeyValue::default() });
    }
}

pub fn text_value(text: String) -> AnyValue {
    AnyValue { value: Some(Value::StringValue(text)) }
}

/// Describes this process as the source of the exported data.
pub fn resource() -> Resource {
    let machine = rustix::system::uname();
    let host = machine.nodename().to_string_lossy();
    let mut attributes = Attributes::default();
    attributes.text("service.name", "foxy");
    attributes.text("service.version", VERSION);
    attributes.text("service.instance.id", &format!("{host}:{}", std::process::id()));
    attributes.text("host.name", &host);
    attributes.number("process.pid", Some(std::process::id()));
    Resource { attributes: attributes.0, ..Resource::default() }
}

/// Names foxy as the program that made the spans and log records.
pub fn scope() -> InstrumentationScope {
    let (name, version) = ("foxy".to_owned(), VERSION.to_owned());
    InstrumentationScope { name, version, ..InstrumentationScope::default() }
}
