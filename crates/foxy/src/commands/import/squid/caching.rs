//! Converts the directives for Squid's cache, such as folders on disk, memory and sizes of objects.
//! Also converts two defaults of Squid. Without `cache_dir` Squid caches in memory alone, and it
//! removes `Set-Cookie` from stored responses.

use super::super::draft::{ImportDraft, Original};
use super::super::original_files;
use super::super::report::ImportReason;
use super::super::terms::AccessTerm;
use super::lines::SquidLine;
use super::{SquidImport, unreadable, values};
use std::fmt::Write;
use toml::{Table, Value};

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
    set_size(import, line, "memory", "MB")
}

pub fn maximum_object_size(import: &mut SquidImport<'_>, line: &SquidLine) -> Converted {
    set_size(import, line, "object-limit", "KB")
}

pub fn maximum_object_size_in_memory(import: &mut SquidImport<'_>, line: &SquidLine) -> Converted {
    set_size(import, line, "memory-object-limit", "KB")
}

fn set_size(
    import: &mut SquidImport<'_>,
    line: &SquidLine,
    key: &'static str,
    unit: &str,
) -> Converted {
    let size = values::size(line.arguments(), unit).ok_or_else(|| unreadable(&line.original))?;
    import.draft.set(key, size, &line.original);
    Ok(())
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

/// Without `cache_dir`, Squid caches only in memory, so this function gives foxy no store. Squid
/// also removes `Set-Cookie` from a stored response. foxy must not send a client the cookie of
/// another client, so foxy stores no response with `Set-Cookie`.
pub fn finish(draft: &mut ImportDraft) {
    if draft.value("store").is_none() {
        let original = Original::file("no cache_dir");
        draft.set("scheme", "null", &original);
        let text = "like the original, foxy caches in memory alone; to cache on disk, remove \
                    `scheme` and set `size`";
        draft.leave(&original, ImportReason::Step(text.into()));
    }
    let original = Original::file("cookies");
    let then = Table::from_iter([("store-set-cookie".to_owned(), Value::from(false))]);
    draft.list("rule", AccessTerm::default().rule("cookies", then), &original);
    let text = "foxy stores no response with `Set-Cookie`; Squid stores it without this field";
    draft.leave(&original, ImportReason::Differs(text.into()));
}
