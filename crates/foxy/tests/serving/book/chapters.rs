//! Runs the shell commands of each chapter of the book, in order, in a folder of their own and with
//! a foxy of their own. A block that cannot run here has a mark after `sh`, and is listed.

use super::pasted::{Stage, Terminal, blocks, read};
use std::io::Write;
use std::path::Path;

/// The marks of blocks that cannot run in a test, with the reason.
const MARKS: [(&str, &str); 3] = [
    ("build", "it builds and tests foxy from its source"),
    ("long", "it takes more than a few seconds, or starts other proxies"),
    ("root", "it needs root, and changes the system"),
];

/// Waits for a server. `WAIT` in a prelude or an edit stands for this command.
const WAIT: &str = "curl --retry 20 --retry-delay 1 --retry-connrefused -so look";

/// Number of blocks with a mark in all chapters. Do not raise it without need.
const MARKED_BLOCKS: usize = 14;

/// A chapter with blocks that run.
struct Chapter {
    name: &'static str,
    /// Commands that run before the first block.
    prelude: &'static str,
    /// Settings of foxy, in addition to the usual settings. `None` if no foxy runs beside the
    /// blocks.
    settings: Option<&'static str>,
    /// Replacements that make a command short, wait for a server, or answer a question.
    edits: &'static [(&'static str, &'static str)],
}

const LAB: Chapter = Chapter {
    name: "lab",
    prelude: "",
    settings: None,
    edits: &[
        ("--scale 0.02", "--scale 0.001"),
        ("--workload fill ", "--workload fill --requests 300 "),
        ("--workload table3 ", "--workload table3 --requests 20 "),
        ("--recorded 100 ", "--recorded 1000 --requests 200 "),
        ("--origin 127.0.0.1:8443 ", "--origin 127.0.0.1:8443 --requests 100 "),
        ("--clients 8..16", "--clients 8"),
        ("--requests 500", "--requests 50"),
        ("--for 10s", "--for 1s"),
    ],
};

const LEAP: Chapter = Chapter {
    name: "leap",
    prelude: "",
    settings: None,
    edits: &[
        ("foxy leap --tls", "WAIT http://127.0.0.1:3131/; foxy leap --requests 50 --tls"),
        ("foxy leap --direct", "WAIT http://127.0.0.1:4181/; foxy leap --requests 50 --direct"),
    ],
};

const MOVING: Chapter = Chapter {
    name: "moving",
    prelude: "printf 'http_port 3128\nacl office src 127.0.0.0/8\nhttp_access allow office\n\
              http_access deny all\n' > /etc/squid/squid.conf\n",
    settings: None,
    edits: &[("foxy explain", "WAIT http://127.0.0.1:8129/healthz; foxy explain")],
};

const OPERATION: Chapter = Chapter {
    name: "operation",
    prelude: "foxy user token /etc/foxy/users first\n\
              XDG_CONFIG_HOME=/ foxy serve --size 64M --listen 127.0.0.1:3140 --admin off \
              --store /var/cache/foxy &\n\
              WAIT http://127.0.0.1:3140/\n\
              kill $!; wait $!\n",
    settings: Some("users-file = \"/etc/foxy/users\"\n"),
    edits: &[
        ("foxy user add", "echo a word | foxy user add"),
        ("-x http://foxy:3128 -U ann", "-sfo page -x http://127.0.0.1:3128 -U 'ann:a word'"),
        ("http://example.org/", "http://example.com/"),
    ],
};

const WORKLOADS: Chapter = Chapter {
    name: "workloads",
    prelude: "",
    settings: None,
    edits: &[("foxy load", "WAIT http://127.0.0.1:3128/; foxy load --requests 100")],
};

const CHAPTERS: [&Chapter; 5] = [&LAB, &LEAP, &MOVING, &OPERATION, &WORKLOADS];

impl Chapter {
    fn run(&self) {
        let text = read(&format!("docs/{}.md", self.name));
        let ports = "127.0.0.1:3128 127.0.0.1:3129 127.0.0.1:3140";
        let edited = |script: &str| {
            let edits = self.edits.iter();
            edits.fold(script.to_owned(), |script, (from, to)| script.replace(from, to))
        };
        let stage = Stage::set(&format!("{ports} {text}"), self.settings.unwrap_or_default());
        let played = |script: &str| stage.played(&script.replace("WAIT", WAIT));
        stage.paste(&played(self.prelude));
        let _own = self.settings.map(|_| {
            let foxy = Terminal(stage.shell("exec foxy serve").spawn().expect("bash runs"));
            stage.paste(&played("WAIT http://127.0.0.1:3128/"));
            foxy
        });
        let mut count = 0;
        for block in blocks(&text).iter().filter(|block| block.mark.is_none()) {
            stage.paste(&played(&edited(&block.script)));
            count += 1;
        }
        assert!(count > 0, "docs/{}.md has no block to run", self.name);
        for (from, _) in self.edits {
            assert!(text.contains(from), "docs/{}.md has no {from:?}", self.name);
        }
    }
}

#[test]
fn the_commands_of_the_lab_run() {
    LAB.run();
}

#[test]
fn the_commands_of_leap_run() {
    LEAP.run();
}

#[test]
fn the_commands_of_a_move_run() {
    MOVING.run();
}

#[test]
fn the_commands_of_operation_run() {
    OPERATION.run();
}

#[test]
fn the_commands_of_workloads_run() {
    WORKLOADS.run();
}

#[test]
fn each_block_of_the_book_runs_or_says_why_not() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let mut files: Vec<_> = std::fs::read_dir(&folder).expect("docs").flatten().collect();
    files.sort_by_key(std::fs::DirEntry::file_name);
    let mut marked = 0;
    for file in files {
        let name = file.file_name().into_string().expect("UTF-8");
        let Some(chapter) = name.strip_suffix(".md") else { continue };
        for block in blocks(&read(&format!("docs/{name}"))) {
            let Some(mark) = block.mark else {
                let is_run = CHAPTERS.iter().any(|known| known.name == chapter);
                assert!(is_run, "docs/{name}:{}: add a Chapter, or a mark after sh", block.line);
                continue;
            };
            let reason = MARKS.iter().find(|(known, _)| *known == mark);
            let (_, reason) = reason.unwrap_or_else(|| panic!("docs/{name}: unknown mark {mark}"));
            let text = format!("NOT RUN: docs/{name}:{}: {reason}\n", block.line);
            std::io::stderr().write_all(text.as_bytes()).expect("standard error is writable");
            marked += 1;
        }
    }
    assert_eq!(marked, MARKED_BLOCKS, "blocks that do not run");
}
