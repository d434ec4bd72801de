//! Reads the files that the original configuration includes.

use foxy_rules::operator::Pattern;
use std::path::{Path, PathBuf};

/// Finds and reads the included files.
#[derive(Debug)]
pub struct OriginalFiles {
    /// The folder of the original's main configuration file.
    folder: PathBuf,
}

impl OriginalFiles {
    pub fn beside(main: &Path) -> Self {
        Self { folder: main.parent().unwrap_or(Path::new("")).to_owned() }
    }

    /// Returns name and content of each file at `path`, which the configuration names. The last
    /// part of `path` may have wildcards. `usual` is the program's usual folder, such as
    /// `/etc/squid/`. If `path` begins with `usual` and does not exist, the folder of the main file
    /// replaces `usual` in the path.
    pub fn read(&self, path: &str, usual: &str) -> Result<Vec<(String, String)>, String> {
        let moved = path.strip_prefix(usual).map(|rest| self.folder.join(rest));
        let mut paths = find(&self.folder.join(path))?;
        if paths.is_empty()
            && let Some(moved) = moved
        {
            paths = find(&moved)?;
        }
        if paths.is_empty() {
            return Err(format!("no file {path} is here"));
        }
        paths.iter().map(|path| content(path)).collect()
    }
}

/// Returns foxy's name for the folder or file `path` of the original, so that both programs can run
/// side by side. `usual` is the original's usual folder, `foxy` is foxy's.
fn renamed(path: &str, usual: &str, foxy: &str) -> Option<String> {
    path.strip_prefix(usual).map(|rest| format!("{foxy}{rest}"))
}

/// Returns a folder for foxy's store in place of `path`, the folder of the original's cache.
pub fn own_folder(path: &str, usual: &str) -> String {
    renamed(path, usual, "/var/cache/foxy")
        .unwrap_or_else(|| format!("{}-foxy", path.trim_end_matches('/')))
}

/// Returns a file for foxy's access log in place of `path`, the log of the original.
pub fn own_log(path: &str, usual: &str) -> String {
    renamed(path, usual, "/var/log/foxy/").unwrap_or_else(|| match path.rsplit_once('/') {
        Some((folder, name)) => format!("{folder}/foxy-{name}"),
        None => format!("foxy-{path}"),
    })
}

fn content(path: &Path) -> Result<(String, String), String> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let bytes = std::fs::read(path).map_err(|error| format!("cannot read {name}: {error}"))?;
    Ok((name, String::from_utf8_lossy(&bytes).into_owned()))
}

/// Returns the existing files at `path`, sorted by name.
fn find(path: &Path) -> Result<Vec<PathBuf>, String> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if !name.contains(['*', '?', '[']) {
        return Ok(Some(path.to_owned()).filter(|path| path.is_file()).into_iter().collect());
    }
    let pattern: Pattern = name.parse()?;
    let Ok(entries) = std::fs::read_dir(path.parent().unwrap_or(Path::new("."))) else {
        return Ok(Vec::new());
    };
    let is_wanted = |entry: &std::fs::DirEntry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        !name.starts_with('.') && pattern.matches(name.as_bytes())
    };
    let found = entries.flatten().filter(is_wanted).map(|entry| entry.path());
    let mut found: Vec<PathBuf> = found.filter(|path| path.is_file()).collect();
    found.sort();
    Ok(found)
}
