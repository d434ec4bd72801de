//! The new process of an upgrade, as the old process sees it.

use super::keeper::RemoteKeeper;
use super::link::{Link, Message, NoPacket, VERSION};
use super::{NotUpgraded, OPEN_LIMIT, START_LIMIT, binary};
use crate::serve::activation::Purpose;
use foxy_base::clock;
use foxy_proxy::server::listener::{ListenSocket, SharedListener};
use rustix::io::retry_on_intr;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// The environment variable that marks the new process of an upgrade. The standard input of the new
/// process is the link to the old process.
pub const VARIABLE: &str = "UPGRADE_OF_FOXY";

/// An event that the new process reports after it has begun to serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SuccessorNews {
    /// The new process stops, or is replaced itself.
    Leaving,
    Ended,
}

/// A new process that does not serve yet. Dropping this value kills the process.
pub struct Successor {
    /// The new process of an upgrade. `None` after the new process has begun to serve.
    child: Option<Child>,
    link: Arc<Link>,
    /// Passes purges on to the new process.
    pub keeper: Arc<RemoteKeeper>,
    pub process: u32,
    /// Whether the new process takes idle connections.
    takes_clients: bool,
}

impl Drop for Successor {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            kill_group(&child);
            // The process cannot outlive the kill.
            let _ = child.wait();
        }
    }
}

impl Successor {
    /// Starts the new process with the arguments of this process, and passes it the listening
    /// sockets. Waits up to [`START_LIMIT`] until the new process is ready to open the stores.
    pub fn start(
        named: Option<&str>,
        sockets: &[(Purpose, SharedListener)],
    ) -> Result<Self, NotUpgraded> {
        let program = binary::choose(named)?;
        let shown = program.to_string_lossy().into_owned();
        let cannot = |error| NotUpgraded::CannotStart(shown, error);
        let (link, other) = match Link::pair() {
            Ok(pair) => pair,
            Err(error) => return Err(cannot(error)),
        };
        let mut command = Command::new(&program);
        command.args(std::env::args_os().skip(1)).env(VARIABLE, "1").stdin(Stdio::from(other));
        // If the binary is a script, its own children hold copies of the sockets. They are in the
        // same process group.
        command.process_group(0);
        for variable in ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"] {
            command.env_remove(variable);
        }
        let child = command.spawn().map_err(cannot)?;
        // The command still owns a copy of the link's other end. With this copy, the link would
        // stay open when the new process ends, and this process would not notice the end.
        drop(command);
        let (process, link) = (child.id(), Arc::new(link));
        let keeper = Arc::new(RemoteKeeper::new(Arc::clone(&link)));
        let mut successor =
            Self { child: Some(child), link, keeper, process, takes_clients: false };
        successor.send_sockets(sockets);
        successor.wait_for(&Message::Ready, START_LIMIT, NotUpgraded::StartTooSlow)?;
        Ok(successor)
    }

    /// Returns the link through which idle connections pass to the new process, if the new process
    /// takes them.
    pub fn client_link(&self) -> Option<Arc<Link>> {
        self.takes_clients.then(|| Arc::clone(&self.link))
    }

    /// Sends the sockets. Ignores errors: a process without sockets does not become ready in time.
    fn send_sockets(&self, sockets: &[(Purpose, SharedListener)]) {
        let count = sockets.iter().map(|(_, shared)| shared.sockets.len()).sum();
        self.link.tell(&Message::Hello { version: VERSION, sockets: count });
        for (purpose, SharedListener { sockets, is_given, .. }) in sockets {
            let message = Message::Socket { purpose: *purpose, is_given: *is_given };
            for socket in sockets {
                self.link.send(&message, &[], Some(descriptor(socket)), START_LIMIT);
            }
        }
    }

    /// Tells the new process that it may open the stores, and waits up to [`OPEN_LIMIT`] until it
    /// serves. Later events of the new process arrive at the returned receiver.
    pub fn take_over(mut self) -> Result<UnboundedReceiver<SuccessorNews>, NotUpgraded> {
        self.link.tell(&Message::TakeStores);
        self.wait_for(&Message::Serving, OPEN_LIMIT, NotUpgraded::OpenTooSlow)?;
        let (sender, news) = unbounded_channel();
        let (link, keeper) = (Arc::clone(&self.link), Arc::clone(&self.keeper));
        let Some(mut child) = self.child.take() else { return Ok(news) };
        let watch = move || {
            loop {
                match link.receive(None).map(|packet| packet.message) {
                    Ok(Message::Purged(message, latest)) => keeper.answered(message, latest),
                    Ok(Message::Leaving) => drop(sender.send(SuccessorNews::Leaving)),
                    Ok(_) | Err(NoPacket::Late) => {}
                    Err(NoPacket::Ended) => break,
                }
            }
            // Waits for the exit status, so that no zombie process remains.
            let _ = child.wait();
            let _ended = sender.send(SuccessorNews::Ended);
        };
        // If the thread cannot start, this process neither receives answers to purges nor serves
        // again.
        let _ = std::thread::Builder::new().name("successor".into()).spawn(watch);
        Ok(news)
    }

    fn wait_for(
        &mut self,
        expected: &Message,
        limit: Duration,
        late: NotUpgraded,
    ) -> Result<(), NotUpgraded> {
        let until = clock::monotonic() + limit;
        loop {
            match self.link.receive(Some(until)).map(|packet| packet.message) {
                Ok(message) if message == *expected => return Ok(()),
                Ok(Message::Failed(why)) => return Err(NotUpgraded::Failed(why)),
                Ok(Message::Purged(message, latest)) => self.keeper.answered(message, latest),
                Ok(Message::TakesClients) => self.takes_clients = true,
                Ok(_) => {}
                Err(NoPacket::Late) => return Err(late),
                Err(NoPacket::Ended) => {
                    return Err(NotUpgraded::Ended(self.child.take().and_then(ended)));
                }
            }
        }
    }
}

/// Waits until the new process has ended, and kills the processes that it has started.
fn ended(mut child: Child) -> Option<ExitStatus> {
    // Before the kill, the ended process must keep its id, so that no other group can get this id.
    let keeps_id = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    retry_on_intr(|| waitid(WaitId::Pid(Pid::from_child(&child)), keeps_id)).ok()?;
    kill_group(&child);
    child.wait().ok()
}

/// Kills the new process and all processes that it has started.
fn kill_group(child: &Child) {
    // An error means that no process of the group is left.
    let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
}

fn descriptor(socket: &ListenSocket) -> BorrowedFd<'_> {
    match socket {
        ListenSocket::Tcp(listener) => listener.as_fd(),
        ListenSocket::Unix(listener) => listener.as_fd(),
    }
}
