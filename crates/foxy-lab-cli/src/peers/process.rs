//! Runs a proxy in its own folder and process group. To stop the proxy, ends it and all processes
//! that it started, but no others.

use super::control_group::ControlGroup;
use super::secured::Papers;
use super::usage::{self, Usage};
use super::{Description, Peer, Plan, helper};
use foxy_base::{Instant, clock};
use foxy_cli::process_table::{Process, family, left_of_group};
use foxy_cli::terminal::{self, Level};
use rustix::process::{Pid, Signal, geteuid, kill_process, kill_process_group};
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

const GRACE: Duration = Duration::from_secs(15);
const SILENCE: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(20);

/// The user `nobody`. If root runs this program, all proxies except foxy run as this user. foxy
/// runs as root, because `nobody` may be unable to read its program file.
#[derive(Clone, Copy, Debug)]
struct User {
    id: u32,
    group: u32,
}

pub struct Running {
    name: &'static str,
    child: Child,
    asked_to_end: Option<Instant>,
    messages: PathBuf,
    helper: Option<Process>,
    family: Vec<Process>,
}

impl Running {
    /// Writes the configuration files, prepares the cache, and starts the proxy. The proxy's output
    /// goes to a file in its folder.
    pub fn start(
        peer: &Peer,
        program: &Path,
        description: &Description,
        plan: &Plan,
        limit: Option<&ControlGroup>,
    ) -> Result<Self, String> {
        let failed = |what: &str, error: io::Error| format!("{}: {what}: {error}", peer.name);
        let user = if peer.is_part_of_foxy() { Ok(None) } else { unprivileged() };
        let user = user.map_err(|error| failed("no user to run as", error))?;
        lay_out(description, plan, user)
            .map_err(|error| failed("the proxy's folder cannot be made", error))?;
        let messages = description.folder.join("output");
        let output = File::create(&messages)
            .map_err(|error| failed("the file for the proxy's output cannot be made", error))?;
        let command = |program: &Path, arguments: &[String]| -> io::Result<Command> {
            let mut command = Command::new(program);
            command.args(arguments).current_dir(&description.folder).process_group(0);
            command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output.try_clone()?);
            if let Some(user) = user {
                command.uid(user.id).gid(user.group);
            }
            Ok(command)
        };
        if let Some(arguments) = &plan.prepare {
            let status = command(program, arguments).and_then(|mut command| command.status());
            let status =
                status.map_err(|error| failed("the proxy's cache cannot be made", error))?;
            if !status.success() {
                return Err(format!(
                    "{}: the proxy's cache was not made: {}",
                    peer.name,
                    last_lines(&messages)
                ));
            }
        }
        let helper = plan.helper.as_ref().map(|helper| helper.start(command)).transpose();
        let helper = helper.map_err(|why| format!("{}: {why}", peer.name))?;
        let child = command(program, &plan.serve).and_then(|mut command| command.spawn());
        let child = child.map_err(|error| {
            helper.iter().for_each(helper::ask_to_end);
            failed("the proxy cannot be started", error)
        })?;
        let running = Self {
            name: peer.name,
            child,
            asked_to_end: None,
            messages,
            helper,
            family: Vec::new(),
        };
        if let Some(limit) = limit {
            limit
                .hold(running.child.id())
                .map_err(|error| failed("the proxy's memory cannot be limited", error))?;
        }
        Ok(running)
    }

    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    pub fn last_words(&self) -> String {
        last_lines(&self.messages)
    }

    pub fn processes(&mut self) -> Vec<u32> {
        self.family = self.all();
        self.family.iter().filter(|process| !process.ended).map(|process| process.id).collect()
    }

    pub fn usage(&mut self) -> Option<Usage> {
        self.family = self.all();
        usage::of(&self.family)
    }

    fn all(&self) -> Vec<Process> {
        let mut found = family(self.child.id());
        found.extend(
            self.helper
                .iter()
                .filter(|helper| helper.still_runs())
                .flat_map(|helper| family(helper.id)),
        );
        found
    }

    pub fn ask_to_end(&mut self) {
        if self.asked_to_end.is_some() || self.ended().is_some() {
            return;
        }
        // List the proxy's child processes now. After the proxy has ended, they can no longer be
        // found.
        let now = self.all();
        let seen = std::mem::replace(&mut self.family, now);
        self.family.extend(seen);
        self.asked_to_end = Some(clock::monotonic());
        if let Some(process) = self.group() {
            let _gone_meanwhile = kill_process(process, Signal::TERM);
        }
    }

    fn group(&self) -> Option<Pid> {
        i32::try_from(self.child.id()).ok().and_then(Pid::from_raw)
    }

    fn wait_since(&mut self, asked: Instant) {
        let mut is_said = false;
        while self.ended().is_none() {
            let waited = clock::monotonic().since(asked);
            if waited >= GRACE {
                return;
            }
            if waited >= SILENCE && !is_said {
                let (name, most) = (self.name, GRACE.as_secs());
                terminal::report(Level::Info, &format!("waiting up to {most} s for {name} to end"));
                is_said = true;
            }
            std::thread::sleep(TICK);
        }
    }

    pub fn stop(&mut self) {
        self.helper.iter().for_each(helper::ask_to_end);
        self.ask_to_end();
        if let Some(asked) = self.asked_to_end.filter(|_| self.ended().is_none()) {
            self.wait_since(asked);
            // The process group still has members, so the kernel has not given its id to another
            // group. The signal reaches only processes of this proxy.
            if let Some(group) = self.group() {
                let _none_left = kill_process_group(group, Signal::KILL);
            }
            let _reaped = self.child.wait();
        }
        // An orphaned process gets another parent but stays in its process group. So this code also
        // searches by group.
        self.family.extend(left_of_group(self.child.id()));
        self.family.extend(self.helper);
        for process in self.family.iter().filter(|process| process.still_runs()) {
            if let Some(process) = i32::try_from(process.id).ok().and_then(Pid::from_raw) {
                let _gone_meanwhile = kill_process(process, Signal::KILL);
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
    }
}

fn lay_out(description: &Description, plan: &Plan, user: Option<User>) -> io::Result<()> {
    std::fs::create_dir_all(&description.folder)?;
    std::fs::set_permissions(&description.folder, Permissions::from_mode(0o755))?;
    let give = |path: &Path| match user {
        Some(user) => chown(path, Some(user.id), Some(user.group)),
        None => Ok(()),
    };
    give(&description.folder)?;
    let own = plan.folders.iter().map(|name| description.folder.join(name));
    let beside =
        description.beside.iter().flat_map(|folder| [folder.clone(), folder.join("cache")]);
    for folder in own.chain(beside) {
        std::fs::create_dir_all(&folder)?;
        give(&folder)?;
    }
    let files = plan.files.iter().map(|(name, text)| (*name, text.as_str(), 0o644));
    for (name, text, mode) in files.chain(description.papers.iter().flat_map(Papers::files)) {
        let path = description.folder.join(name);
        let mut file =
            OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(&path)?;
        file.write_all(text.as_bytes())?;
        give(&path)?;
    }
    Ok(())
}

fn unprivileged() -> io::Result<Option<User>> {
    if !geteuid().is_root() {
        return Ok(None);
    }
    let users = std::fs::read_to_string("/etc/passwd")?;
    let found = users.lines().find_map(|line| {
        let mut fields = line.strip_prefix("nobody:")?.split(':').skip(1);
        Some(User { id: fields.next()?.parse().ok()?, group: fields.next()?.parse().ok()? })
    });
    found
        .map(Some)
        .ok_or_else(|| io::Error::other("there is no user nobody; run as a user that is not root"))
}

fn last_lines(file: &Path) -> String {
    const KEPT: u64 = 400;
    let read = || -> io::Result<String> {
        let mut file = File::open(file)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(KEPT)))?;
        let mut bytes = Vec::new();
        file.take(KEPT).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).split_whitespace().collect::<Vec<_>>().join(" "))
    };
    match read() {
        Ok(text) if !text.is_empty() => text,
        _ => "the process printed nothing".into(),
    }
}

#[cfg(test)]
mod tests;
