//! The table of settings, a file for each chapter. A row makes the field in [`Settings`], the field
//! in [`Written`], the flag, the key in the file, the bounds, the default and the documentation.

/// Settings of one chapter: a struct of values in force, a struct of values as written, and `ROWS`.
///
/// A `given` setting always has a value, at least its default. An `optional` setting may have none.
/// A `defaulted` setting without a value has the default of its type.
macro_rules! settings {
    (
        $(#[$about:meta])*
        struct $group:ident, written as $written:ident in $place:ident, chapter $area:ident;
        $($field:ident: $mode:ident $value:ty {
            key: $key:literal,
            $(flag: $flag:literal,)?
            kind: $kind:path $(, $argument:expr)*;
            default: $default:expr,
            doc: $doc:literal,
        })*
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $group {
            $(#[doc = $doc] pub $field: settings!(@type $mode $value),)*
        }

        /// The same settings as they were written.
        #[derive(Debug, Default)]
        pub struct $written {
            $(#[doc = $doc] pub $field: Option<$value>,)*
        }

        impl $group {
            /// Values in force, once every `given` setting is written or has its default.
            pub fn of(written: &$written) -> Self {
                Self { $($field: settings!(@in_force $mode written.$field),)* }
            }
        }

        /// The rows, in the order of the documentation.
        pub static ROWS: &[Setting] = &[$(Setting {
            key: $key,
            flag: settings!(@flag $($flag)?),
            area: Area::$area,
            kind: $kind(|written| &mut written.$place.$field $(, $argument)*),
            default: $default,
            doc: $doc,
        },)*];
    };
    (@type given $value:ty) => { $value };
    (@type optional $value:ty) => { Option<$value> };
    (@type defaulted $value:ty) => { $value };
    (@in_force given $slot:expr) => {
        $slot.clone().expect("`complete` has given every setting its default")
    };
    (@in_force optional $slot:expr) => { $slot.clone() };
    (@in_force defaulted $slot:expr) => { $slot.clone().unwrap_or_default() };
    (@flag $flag:literal) => { Some($flag) };
    (@flag) => { None };
}

mod access;
mod disk;
mod limits;
mod memory;
mod network;
mod operation;
mod timeouts;

pub use access::Access;
pub use disk::DiskCache;
pub use limits::Limits;
pub use memory::Memory;
pub use network::Network;
pub use operation::Operation;
pub use timeouts::Timeouts;

use super::complaint::Source;
use super::kind::Setting;
use std::collections::BTreeMap;

/// Settings in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Addresses and threads.
    pub network: Network,
    /// Relayed destinations, tunnels, purges and interception.
    pub access: Access,
    /// The cache on disk.
    pub disk: DiskCache,
    /// The cache in memory.
    pub memory: Memory,
    /// Longest times to wait.
    pub timeouts: Timeouts,
    /// Limits on connections and message heads.
    pub limits: Limits,
    /// Logs, and the graceful stop.
    pub operation: Operation,
}

impl Settings {
    /// Values in force, once every setting that needs a value has one.
    pub fn of(written: &Written) -> Self {
        Self {
            network: Network::of(&written.network),
            access: Access::of(&written.access),
            disk: DiskCache::of(&written.disk),
            memory: Memory::of(&written.memory),
            timeouts: Timeouts::of(&written.timeouts),
            limits: Limits::of(&written.limits),
            operation: Operation::of(&written.operation),
        }
    }
}

/// Settings as the command line and the file give them, and where each was written.
#[derive(Debug, Default)]
pub struct Written {
    /// Addresses and threads.
    pub network: network::WrittenNetwork,
    /// Relayed destinations, tunnels, purges and interception.
    pub access: access::WrittenAccess,
    /// The cache on disk.
    pub disk: disk::WrittenDiskCache,
    /// The cache in memory.
    pub memory: memory::WrittenMemory,
    /// Longest times to wait.
    pub timeouts: timeouts::WrittenTimeouts,
    /// Limits on connections and message heads.
    pub limits: limits::WrittenLimits,
    /// Logs, and the graceful stop.
    pub operation: operation::WrittenOperation,
    /// Where each setting was written, by key.
    pub sources: BTreeMap<&'static str, Source>,
}

/// Every setting, in the order of the documentation.
pub fn all() -> impl Iterator<Item = &'static Setting> {
    [
        network::ROWS,
        access::ROWS,
        disk::ROWS,
        memory::ROWS,
        timeouts::ROWS,
        limits::ROWS,
        operation::ROWS,
    ]
    .into_iter()
    .flatten()
}
