//! `cargo xtask quotes FOLDER`: compares the table of quoted values with the texts of the papers.
//! The texts are not in the repository.

use crate::workspace;
use foxy_report::figure::quotes::compare;
use std::collections::BTreeMap;
use std::path::Path;

const TABLE: &str = "crates/foxy-report/src/figure/quotes.tsv";
/// The list of the papers' requirements, beside the folder of the papers.
const LIST: &str = "SEEDS.md";

/// Compares each quote with the papers in `folder`. Writes into the table where the quotes were
/// found, and the seal: checksums of papers and table.
pub fn update(folder: &str) -> Result<String, String> {
    let file = workspace::root().join(TABLE);
    let read = |path: &Path| {
        std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
    };
    let table = compare(&read(&file)?, &papers(Path::new(folder), read)?)?;
    std::fs::write(&file, &table).map_err(|error| format!("{TABLE}: {error}"))?;
    Ok(format!("{TABLE}: every quote is in its paper"))
}

/// Returns the text of each paper, by the number with which its file name begins.
fn papers(
    folder: &Path,
    read: impl Fn(&Path) -> Result<String, String>,
) -> Result<BTreeMap<String, String>, String> {
    let unreadable = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut papers = BTreeMap::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let number = name.split(['_', '.']).next().unwrap_or_default().to_owned();
        papers.insert(number, read(&path)?);
    }
    let list = folder.parent().map(|parent| parent.join(LIST));
    if let Some(list) = list.filter(|list| list.exists()) {
        papers.insert("list".into(), read(&list)?);
    }
    Ok(papers)
}
