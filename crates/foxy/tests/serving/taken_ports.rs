//! Tests commands that start a proxy, if another program takes the proxy's port before the proxy
//! listens.

use crate::support::commands::{command, ended, records};
use std::fs::Permissions;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A folder with a script in place of nginx. The script normally runs foxy. At its first start, it
/// writes its address to a file, and waits until another program has taken the address. Then it
/// runs the commands in `loser`.
struct StandIn {
    folder: tempfile::TempDir,
}

impl StandIn {
    fn new(loser: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let open = |path: &Path, mode| {
            std::fs::set_permissions(path, Permissions::from_mode(mode)).expect("set");
        };
        let path = |name: &str| folder.path().join(name);
        // If root runs the test, the script runs as the user nobody, who must be able to write
        // here.
        open(folder.path(), 0o777);
        std::fs::create_dir(path("work")).expect("made");
        std::fs::create_dir(path("programs")).expect("made");
        std::fs::copy(env!("CARGO_BIN_EXE_foxy"), path("foxy")).expect("copied");
        let place = folder.path().display();
        let script = format!(
            "#!/bin/sh\n[ \"$1\" = -v ] && {{ echo nginx/1.0.0; exit 0; }}\n\
             listen=$(sed -n 's/^ *listen \\([0-9.:]*\\);.*/\\1/p' \"$2\")\n\
             origin=$(sed -n 's/^ *server \\([0-9.:]*\\);.*/\\1/p' \"$2\")\n\
             if ! [ -e {place}/taken ]; then\n\
             echo \"$listen\" >{place}/part; mv {place}/part {place}/wanted\n\
             until [ -e {place}/taken ]; do sleep 0.02; done\n\
             {loser}\nfi\n\
             exec {place}/foxy serve --listen \"$listen\" --admin off --origin \"http://$origin\" \
             --store \"$6/cache\" --size 64M --memory 16M --access-log off\n"
        );
        std::fs::write(path("programs/nginx"), script).expect("written");
        for (name, mode) in
            [("work", 0o755), ("programs", 0o755), ("foxy", 0o755), ("programs/nginx", 0o755)]
        {
            open(&path(name), mode);
        }
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Waits until the script has written the address at which it would listen. Returns this
    /// address.
    fn wanted(&self) -> String {
        for _ in 0..3000 {
            if let Ok(text) = std::fs::read_to_string(self.path("wanted")) {
                return text.trim().to_owned();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("the stand-in was never started");
    }

    /// Runs the command. Calls `take` with the address at which the script would listen.
    fn run<T>(
        &self,
        mut command: Command,
        take: impl FnOnce(&str) -> T + Send,
    ) -> (Option<i32>, String, String, T)
    where
        T: Send,
    {
        command.env("PATH", format!("{}:/usr/bin:/bin", self.path("programs").display()));
        std::thread::scope(|scope| {
            let taken = scope.spawn(|| {
                let taken = take(&self.wanted());
                std::fs::write(self.path("taken"), "").expect("written");
                taken
            });
            let (code, out, err) = ended(&mut command);
            (code, out, err, taken.join().expect("taken"))
        })
    }

    /// Returns the message that the command must print about the taken port.
    fn said(&self) -> String {
        format!("nginx: another program took {}; starting it at another port", self.wanted())
    }
}

/// Another program, which Drop ends.
struct Other(Child);

impl Drop for Other {
    fn drop(&mut self) {
        self.0.kill().and_then(|()| self.0.wait()).expect("ended");
    }
}

#[test]
fn a_proxy_of_a_comparison_whose_port_is_taken_is_started_at_another() {
    let stand_in = StandIn::new("");
    let mut command =
        command(&["compare", "nginx", "--quick", "--workload", "memory-hit", "--seconds", "1"]);
    command.args(["--clients", "2", "--folder"]).arg(stand_in.path("work"));
    command.arg("--out").arg(stand_in.path("out"));
    let (code, out, err, _listener) =
        stand_in.run(command, |place| TcpListener::bind(place).expect("still free"));
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(err.contains(&stand_in.said()), "{err}");
    let records = records(&stand_in.path("out/records.jsonl"));
    assert!(
        records.iter().any(|record| record["subject"] == "nginx" && record["name"] == "hit_ratio")
    );
}

#[test]
fn a_program_that_answers_rightly_in_the_place_of_a_proxy_is_not_taken_for_it() {
    let stand_in = StandIn::new("exec sleep 600");
    let mut command = command(&["wpb", "--start", "nginx", "--clients", "4", "--requests", "20"]);
    command
        .args(["--latency", "1ms", "--fail-if", "hit_ratio<0.01", "--folder"])
        .arg(stand_in.path("work"));
    let (code, out, err, _origin) = stand_in.run(command, |place| {
        let mut origin = crate::support::commands::command(&["origin", "--listen", place]);
        let child = origin.stdout(Stdio::null()).spawn().expect("the binary runs");
        while std::net::TcpStream::connect(place).is_err() {
            std::thread::sleep(Duration::from_millis(20));
        }
        Other(child)
    });
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(err.contains(&stand_in.said()), "{err}");
}
