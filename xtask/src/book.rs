//! Makes the documents into a book with search. mdbook renders it from a copy of the documents in
//! `target/book-source`, because links lead from `docs/` to files beside it.

use crate::workspace::{self, SourceFile};
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

const MDBOOK: &str = "mdbook@0.5.4";

/// Parts of the book: a title, and the documents in `docs/` that belong to it.
const PARTS: [(&str, &[&str]); 4] = [
    ("For operators", &["moving", "configuration", "operation", "fleet", "errors", "limits"]),
    ("HTTP", &["conformance", "clauses", "http-hazards"]),
    ("Storage", &["store", "store-format", "proofs"]),
    ("The lab", &["lab", "comparing", "workloads", "wpb", "leap", "figures"]),
];

/// Documents outside `docs/`, in their order.
const AROUND: [&str; 4] = ["README.md", "CHANGELOG.md", "ARCHITECTURE.md", "CONTRIBUTING.md"];

/// Folders whose documents each become a chapter of a last part.
const FOLDERS: [(&str, &str); 2] = [("Reasons", "docs/decisions/"), ("Records", "results/")];

/// Makes the book, and returns the place of its first page. Installs mdbook if it is missing.
pub fn make() -> Result<String, String> {
    let files = workspace::files()?;
    let target = workspace::root().join("target");
    let source = target.join("book-source");
    // The removal fails if the folder does not exist, which does no harm.
    let _ = std::fs::remove_dir_all(&source);
    for SourceFile { path, text } in files.iter().filter(|file| file.path.ends_with(".md")) {
        write(&source.join(path), text)?;
    }
    write(&source.join("SUMMARY.md"), &summary(&files)?)?;
    let settings = "[book]\ntitle = \"foxy\"\nlanguage = \"en\"\nsrc = \".\"\n\n\
                    [build]\nbuild-dir = \"../book\"\n";
    write(&source.join("book.toml"), settings)?;
    let tools = target.join("tools");
    let install = ["install", "--quiet", "--locked", "--no-default-features", "--features"];
    let mut cargo = Command::new("cargo");
    run(cargo.args(install).args(["search", MDBOOK, "--root"]).arg(&tools))?;
    run(Command::new(tools.join("bin/mdbook")).arg("build").arg(&source))?;
    Ok(target.join("book/index.html").display().to_string())
}

/// Returns a message for each document that the book lacks.
pub fn complaints(files: &[SourceFile]) -> Vec<String> {
    let placed: Vec<String> = chapters().into_iter().map(|(_, path)| path).collect();
    let is_document =
        |path: &str| path.starts_with("docs/") && path.ends_with(".md") && !is_in_folder(path);
    let documents = files.iter().map(|file| &file.path).filter(|path| is_document(path));
    let missing = documents.filter(|path| !placed.contains(path));
    missing
        .map(|path| format!("{path}: belongs to no part of the book (xtask/src/book.rs)"))
        .collect()
}

fn is_in_folder(path: &str) -> bool {
    FOLDERS.iter().any(|(_, folder)| path.starts_with(folder))
}

/// Returns part and path of each chapter that has a fixed place.
fn chapters() -> Vec<(Option<&'static str>, String)> {
    let of_part = |&(part, names): &(&'static str, &[&str])| {
        let paths = names.iter().map(|name| format!("docs/{name}.md"));
        paths.map(|path| (Some(part), path)).collect::<Vec<_>>()
    };
    let around = AROUND.map(|path| (None, path.to_owned()));
    around.into_iter().chain(PARTS.iter().flat_map(of_part)).collect()
}

/// Returns the table of contents, in mdbook's form.
fn summary(files: &[SourceFile]) -> Result<String, String> {
    let mut all = chapters();
    for (part, folder) in FOLDERS {
        let of_folder = files.iter().filter(|file| file.path.starts_with(folder));
        let documents = of_folder.filter(|file| file.path.ends_with(".md"));
        all.extend(documents.map(|file| (Some(part), file.path.clone())));
    }
    let (mut text, mut last) = ("# Summary\n".to_owned(), None);
    for (part, path) in all {
        if let Some(title) = part.filter(|_| part != last) {
            let _ = write!(text, "\n# {title}\n\n");
        }
        last = part;
        let file = files.iter().find(|file| file.path == path);
        let file = file.ok_or_else(|| format!("{path} is not there"))?;
        let title = file.text.lines().find_map(|line| line.strip_prefix("# "));
        let _ = writeln!(text, "- [{}]({path})", title.unwrap_or(&path));
    }
    Ok(text)
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    let folder = path.parent().unwrap_or(path);
    std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(path, text))
        .map_err(|error| format!("{}: {error}", path.display()))
}

fn run(command: &mut Command) -> Result<(), String> {
    let status = command.status().map_err(|error| format!("{command:?} did not start: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?}: {status}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> SourceFile {
        SourceFile { path: path.into(), text: text.into() }
    }

    #[test]
    fn a_document_without_a_part_is_found() {
        let files = ["docs/lab.md", "docs/new.md", "docs/decisions/new.md", "docs/a.toml"];
        let wrong = complaints(&files.map(|path| file(path, "# A\n")));
        assert_eq!(wrong.len(), 1, "{wrong:?}");
        assert!(wrong[0].starts_with("docs/new.md: "), "{wrong:?}");
    }

    #[test]
    fn the_table_of_contents_has_the_title_of_each_document() {
        let mut files: Vec<_> =
            chapters().iter().map(|(_, path)| file(path, "# A title\n")).collect();
        files.push(file("docs/decisions/why.md", "<!-- hidden -->\n# Why\n"));
        let text = summary(&files).expect("all are there");
        assert!(text.contains("\n# Storage\n\n- [A title](docs/store.md)\n"), "{text}");
        assert!(text.ends_with("\n# Reasons\n\n- [Why](docs/decisions/why.md)\n"), "{text}");
        files.remove(0);
        assert!(summary(&files).is_err());
    }
}
