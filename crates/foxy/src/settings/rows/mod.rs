//! The table of settings. From each row, macros generate the field in [`Settings`] and in
//! [`Written`], the flag, and the key in the file. They also generate the bounds, the default, the
//! documentation and the JSON Schema.

/// Defines the settings of a chapter: a struct of final values, a struct of values that the user
/// wrote, and the table `ROWS`.
///
/// A row is `FIELD: MODE TYPE = "KEY" flag "FLAG", KIND(BOUNDS), DEFAULT;`, after its
/// documentation. A `given` setting always has a value. An `optional` setting may have no value. A
/// `defaulted` setting without a value has the default of its type.
macro_rules! settings {
    (
        struct $group:ident, written as $written:ident in $place:ident, chapter $chapter:literal;
        $(
            $(#[doc = $doc:literal])+
            $field:ident: $mode:ident $value:ty = $key:literal $(flag $flag:literal)?,
            $kind:ident $(($($argument:expr),*))?,
            $preset:ident($($default:literal),*);
        )*
    ) => {
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $group {
            $($(#[doc = $doc])+ pub $field: settings!(@type $mode $value),)*
        }

        #[derive(Debug, Default)]
        pub struct $written {
            $(pub $field: Option<$value>,)*
        }

        impl $group {
            pub const ROWS: &'static [Setting] = &[$(Setting {
                key: $key,
                flag: settings!(@flag $($flag)?),
                chapter: $chapter,
                kind: Kind::$kind(|written| &mut written.$place.$field $($(, $argument)*)?),
                default: settings!(@preset $preset $($default),*),
                lines: &[$($doc),+],
            },)*];

            pub fn of(written: &$written) -> Self {
                Self { $($field: settings!(@in_force $mode written.$field),)* }
            }
        }
    };
    (@type given $value:ty) => { $value };
    (@type optional $value:ty) => { Option<$value> };
    (@type defaulted $value:ty) => { $value };
    (@in_force given $slot:expr) => {
        $slot.clone().expect("`complete` has given every setting its default")
    };
    (@in_force optional $slot:expr) => { $slot.clone() };
    (@in_force defaulted $slot:expr) => { $slot.clone().unwrap_or_default() };
    (@preset Fixed $($text:literal),*) => { Preset::Fixed(&[$($text),*]) };
    (@preset $preset:ident $prose:literal) => { Preset::$preset($prose) };
    (@flag $flag:literal) => { Some($flag) };
    (@flag) => { None };
}

/// Defines all chapters, in the order of the documentation.
macro_rules! chapters {
    ($($place:ident: $file:ident::$group:ident, $written:ident;)*) => {
        $(pub use $file::$group;)*

        /// The final settings of a run of foxy.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct Settings {
            $(pub $place: $group,)*
            /// The operator's rules, in order.
            pub rules: RuleList,
            /// The `[[origin]]` tables, in order.
            pub origins: Vec<OriginTable>,
        }

        impl Settings {
            /// Builds the final settings. `written` must have all defaults already, which the
            /// function `complete` adds.
            pub fn of(written: &Written) -> Self {
                let rules = written.rules.iter().map(|written| written.value.clone()).collect();
                let origins = written.origins.iter().map(|written| written.value.clone());
                let origins = origins.collect();
                Self { $($place: $group::of(&written.$place),)* rules, origins }
            }

            /// Returns true if the settings give certificates for `listen-tls`.
            pub fn has_certificates(&self) -> bool {
                !self.network.tls_certificate.is_empty() || self.acme.directory.is_some()
            }

            /// Returns true if foxy is a reverse proxy.
            pub fn is_reverse(&self) -> bool {
                self.network.origin.is_some() || !self.origins.is_empty()
            }
        }

        /// The settings that the user wrote, in flags, environment or file. Fields for other
        /// settings are `None`.
        #[derive(Debug, Default)]
        pub struct Written {
            $(pub $place: $file::$written,)*
            /// The operator's rules, in order.
            pub rules: Vec<WrittenRule>,
            /// The `[[origin]]` tables, in order.
            pub origins: Vec<WrittenOrigin>,
            /// The place where each setting was written, by key.
            pub sources: BTreeMap<&'static str, Source>,
        }

        /// Returns every setting, in the order of the documentation.
        pub fn all() -> impl Iterator<Item = &'static Setting> {
            [$($group::ROWS),*].into_iter().flatten()
        }
    };
}

mod access;
mod acme;
mod cache;
mod cold;
mod fleet;
mod limits;
mod network;
mod operation;
mod parents;

use super::complaint::Source;
use super::kind::Setting;
use super::origins::{OriginTable, WrittenOrigin};
use super::rules::WrittenRule;
use super::rules::list::RuleList;
use std::collections::BTreeMap;

chapters! {
    network: network::Network, WrittenNetwork;
    access: access::Access, WrittenAccess;
    acme: acme::Acme, WrittenAcme;
    parents: parents::ParentProxies, WrittenParentProxies;
    fleet: fleet::FleetChapter, WrittenFleetChapter;
    cold: cold::ColdTier, WrittenColdTier;
    disk: cache::DiskCache, WrittenDiskCache;
    memory: cache::Memory, WrittenMemory;
    timeouts: limits::Timeouts, WrittenTimeouts;
    limits: limits::Limits, WrittenLimits;
    operation: operation::Operation, WrittenOperation;
}
