//! Rows of the table of settings about what is cached where the RFCs leave it to the operator.

use super::kind::{Area, Kind, Preset, Setting};
use std::time::Duration;

/// How long a "there is nothing" is good.
pub const NEGATIVE_LIFETIME: Setting = Setting {
    key: "negative-lifetime",
    flag: Some("negative-lifetime"),
    area: Area::Store,
    kind: Kind::Span {
        slot: |w| &mut w.negative_lifetime,
        at_least: Duration::ZERO,
        at_most: Duration::from_secs(86_400),
    },
    default: Preset::Fixed(&["0s"]),
    doc: "How long a response with status 404, 405, 410, 414 or 501 answers from the cache when it does not say so itself \
          (RFC 9111 §4.2.2), in whole seconds. 0s stores such a response only if it can be validated. \
          Other errors are never given a lifetime by guess.",
};
