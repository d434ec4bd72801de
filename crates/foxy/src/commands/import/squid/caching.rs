//! Converts the directives for Squid's cache, such as folders on disk, memory and sizes of objects.
//! Also converts two defaults of Squid. Without `cache_dir` Squid caches in memory alone, and it
//! removes `Set-Cookie` from stored responses.

use super::super::draft::{ImportDraft, Original};
use super::super::original_files;
use super::super::report::ImportReason;
use super::super::terms::{AccessTerm, effect};
use super::lines::SquidLine;
use super::{SquidImport, unreadable, values};
use foxy_base::ByteSize;
use std::fmt::Write;
use toml::Value;

type Converted = Result<(), ImportReason>;

/// Converts `cache_dir TYPE FOLDER MEGABYTES …` into a store of foxy's default engine.
pub fn cache_dir(import: &mut SquidImport<'_>, line: &SquidLine) -> Converted {
    let [_, folder, megabytes, rest @ ..] = line.arguments() else {
        return Err(unreadable(&line.original));
    };
    let count: u64 = megabytes.parse().map_err(|_| unreadable(&line.original))?;
    let mut store = original_files::own_folder(folder, "/var/spool/squid");
    write!(store, ",size={}", values::bytes(count << 20)).expect("a String takes all");
    for option in rest.iter().filter_map(|word| word.split_once('=')) {
        match option {
            ("min-size", bytes) => write!(store, ",min-object={bytes}"),
            ("max-size", bytes) => write!(store, ",max-object={bytes}"),
            _ => Ok(()),
        }
        .expect("a String takes all");
    }
    import.draft.push("store", store, &line.original);
    let text = "foxy's store has its own format; foxy does not read what Squid stored";
    Err(ImportReason::Differs(text.into()))
}

pub fn cache_mem(import: &mut SquidImport<'_>, line: &SquidLine) -> Converted {
    let off = set_size(import, line, "memory", "MB", ByteSize(1 << 20))?;
    import.cache_sizes.memory_off = off;
    Ok(())
}

/// Converts the largest size of objects on disk. For a `cache_dir` with `max-size`, Squid takes
/// that size instead.
pub fn maximum_object_size(import: &mut SquidImport<'_>, line: &SquidLine) -> Converted {
    let off = set_size(import, line, "object-limit", "KB", ByteSize(1 << 10))?;
    import.cache_sizes.disk_off = off.then(|| line.original.clone());
    Ok(())
}

pub fn maximum_object_size_in_memory(import: &mut SquidImport<'_>, line: &SquidLine) -> Converted {
    let off = set_size(import, line, "memory-object-limit", "KB", ByteSize(1 << 10))?;
    import.cache_sizes.objects_in_memory_off = off;
    Ok(())
}

/// Sets a size. Returns true if the size is below `least`, the smallest size that foxy accepts.
fn set_size(
    import: &mut SquidImport<'_>,
    line: &SquidLine,
    key: &'static str,
    unit: &str,
    least: ByteSize,
) -> Result<bool, ImportReason> {
    let size = values::size(line.arguments(), unit).ok_or_else(|| unreadable(&line.original))?;
    let is_below = size.parse::<ByteSize>().is_ok_and(|size| size < least);
    if !is_below {
        import.draft.set(key, size, &line.original);
    } else if size != "0" {
        let text = format!("foxy has no size below {least}");
        import.draft.leave(&line.original, ImportReason::Differs(text));
    }
    Ok(is_below)
}

pub fn negative_ttl(import: &mut SquidImport<'_>, line: &SquidLine) -> Converted {
    let time = values::time(line.arguments(), "second");
    let time = time.ok_or_else(|| unreadable(&line.original))?;
    import.draft.set("negative-lifetime", time, &line.original);
    let text = "foxy keeps only responses with status 404, 405, 410, 414 or 501 for this time";
    Err(ImportReason::Differs(text.into()))
}

pub fn store_selection(import: &mut SquidImport<'_>, line: &SquidLine) -> Converted {
    let rule = line.argument(0).ok_or_else(|| unreadable(&line.original))?;
    import.draft.set("store-selection", rule, &line.original);
    Ok(())
}

/// Which parts of the cache the sizes in the configuration switch off.
#[derive(Debug, Default)]
pub struct CacheSizes {
    memory_off: bool,
    objects_in_memory_off: bool,
    disk_off: Option<Original>,
}

impl CacheSizes {
    /// Without `cache_dir`, Squid caches only in memory, so this function gives foxy no store.
    /// Squid also removes `Set-Cookie` from a stored response. foxy must not send a client the
    /// cookie of another client, so foxy stores no response with `Set-Cookie`.
    pub fn finish(&self, draft: &mut ImportDraft) {
        if self.disk_off.is_some() {
            let has_limit =
                |store: &Value| store.as_str().is_some_and(|text| text.contains(",max-object="));
            draft.retain("store", has_limit);
        }
        let memory = Original::file("memory");
        let is_memory_off = self.memory_off || self.objects_in_memory_off;
        match (draft.value("store").is_none(), is_memory_off) {
            (true, true) => {
                let rule = AccessTerm::default().rule("no cache", effect("bypass", true));
                draft.list("rule", rule, &memory);
                draft.set("scheme", "null", &memory);
            }
            (false, true) => {
                let text = "foxy keeps copies of stored responses in memory";
                draft.leave(&memory, ImportReason::Differs(text.into()));
            }
            (true, false) => {
                let no_folder = Original::file("no cache_dir");
                let original = self.disk_off.as_ref().unwrap_or(&no_folder);
                draft.set("scheme", "null", original);
                let text = "like the original, foxy caches in memory alone; to cache on disk, \
                            remove `scheme` and set `size`";
                draft.leave(original, ImportReason::Step(text.into()));
            }
            (false, false) => {}
        }
        let original = Original::file("cookies");
        let rule = AccessTerm::default().rule("cookies", effect("store-set-cookie", false));
        draft.list("rule", rule, &original);
        let text = "foxy stores no response with `Set-Cookie`; Squid stores it without this field";
        draft.leave(&original, ImportReason::Differs(text.into()));
    }
}
