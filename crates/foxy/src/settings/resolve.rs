//! From settings as written to settings in force: fills in defaults, and judges what several
//! settings say together. Pure: what depends on the machine comes in as [`Machine`].

use super::complaint::Complaints;
use super::contradictions;
use super::kind::Preset;
use super::machine::Machine;
use super::parse;
use super::rows::{self, DiskCache, Settings, Written};
use super::store_choice::StoreChoice;
use foxy_base::ByteSize;
use std::ffi::OsStr;

/// By default, this part of the memory the process may use keeps responses ...
const MEMORY_PART: u64 = 8;
/// ... but at most this much, and at least this.
const MEMORY_RANGE: (ByteSize, ByteSize) = (ByteSize(16 << 20), ByteSize(1 << 30));
/// What is assumed of a machine that does not tell its memory.
const MEMORY_UNKNOWN: ByteSize = ByteSize(1 << 30);
/// By default, this part of the free disk becomes a new store ...
const DISK_PART: u64 = 10;
/// ... but at most this much.
const DISK_AT_MOST: ByteSize = ByteSize(10 << 30);

/// Gives every setting that is not written its default.
pub fn complete(written: &mut Written, machine: &Machine) {
    for setting in rows::all() {
        let Preset::Fixed(texts) = setting.default else { continue };
        if super::show::value(&setting.kind, written).is_none() {
            let texts: Vec<&OsStr> = texts.iter().map(OsStr::new).collect();
            parse::put(&setting.kind, &texts, written)
                .expect("the table's defaults are sound; a test reads them");
        }
    }
    written.network.workers.get_or_insert(machine.cores);
    let connections = written.limits.connections.expect("the loop above has set the default");
    written.limits.connections_per_client.get_or_insert(share(connections));
    if written.disk.cache_dir.as_ref().is_none_or(Vec::is_empty) {
        let plain = || vec![StoreChoice::plain(machine.cache_folder.clone())];
        written.disk.store.get_or_insert_with(plain);
    }
    written.memory.size.get_or_insert_with(|| memory(machine.memory));
    let disk = DiskCache::of(&written.disk);
    let asks = |store: &StoreChoice| store.scheme.unwrap_or(disk.scheme).row().takes_policy();
    if !written.sources.contains_key("policy") && !disk.stores().any(asks) {
        written.disk.policy = None;
    }
}

fn memory(available: Option<ByteSize>) -> ByteSize {
    let available = available.unwrap_or(MEMORY_UNKNOWN);
    ByteSize(available.0 / MEMORY_PART).clamp(MEMORY_RANGE.0, MEMORY_RANGE.1)
}

/// The size of a new store on a disk with `free` bytes, in whole mebibytes.
pub fn new_store_size(free: ByteSize) -> ByteSize {
    let mebibytes = (free.0 / DISK_PART).min(DISK_AT_MOST.0) >> 20;
    ByteSize(mebibytes << 20)
}

/// Makes settings of a completed [`Written`], or says what does not go together.
pub fn resolve(written: &Written) -> Result<Settings, Complaints> {
    let settings = Settings::of(written);
    let complaints = contradictions::find(&settings, written);
    if complaints.is_empty() { Ok(settings) } else { Err(Complaints(complaints)) }
}

/// The share of one client in all connections, where no share is written.
const fn share(connections: usize) -> usize {
    connections - connections / 4
}

#[cfg(test)]
#[path = "resolve_tests.rs"]
mod tests;
