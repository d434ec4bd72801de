//! Runs tests in network namespaces of their own, so that they may change addresses, routes and
//! packet filters.

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// The variable is set in the namespace. A test starts itself again in the namespace, and knows
/// from the variable that it runs there.
const IN_NAMESPACE: &str = "FOXY_TEST_IN_NAMESPACE";
/// A line of standard error that begins so is shown at once, even from within a namespace.
pub const PROGRESS: &str = "progress: ";

/// Returns whether this process is the test that [`rerun`] has started.
pub fn is_inside() -> bool {
    std::env::var_os(IN_NAMESPACE).is_some()
}

/// Runs the test `name` again in a new network namespace, after the shell commands `set_up`.
/// Returns false if the system allows no namespace, or if a command fails.
pub fn rerun(name: &str, set_up: &str) -> bool {
    let namespace = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--net", "--", "sh", "-c", script]);
        command
    };
    if !namespace(set_up).status().is_ok_and(|status| status.success()) {
        return false;
    }
    let mut test = namespace(&format!("{set_up} && exec \"$0\" --exact {name} --nocapture"));
    test.arg(std::env::current_exe().expect("a program")).env(IN_NAMESPACE, "1");
    let mut test =
        test.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it ran before");
    let (mut stdout, stderr) = (test.stdout.take(), test.stderr.take());
    let listener = std::thread::spawn(move || std::io::read_to_string(stdout.as_mut()?).ok());
    let mut said = String::new();
    for line in BufReader::new(stderr.expect("piped")).lines().map_while(Result::ok) {
        if line.starts_with(PROGRESS) {
            tell(&line);
        }
        said = said + &line + "\n";
    }
    let status = test.wait().expect("a child");
    let said = listener.join().ok().flatten().unwrap_or_default() + &said;
    assert!(status.success() && said.contains("1 passed"), "{said}");
    true
}

/// Writes a line to standard error, even while the test harness captures output.
pub fn tell(line: &str) {
    // Progress is of no use without a reader.
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Runs a shell script, which must succeed.
pub fn shell(script: &str) {
    let output = Command::new("sh").args(["-ec", script]).output().expect("sh runs");
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Another machine: a network namespace with a link to this namespace. Drop removes it.
pub struct Neighbour {
    process: Child,
}

impl Neighbour {
    /// Makes a neighbour with the link `link`. The addresses of both ends have the beginnings
    /// `four` and `six`: this namespace has the number 1, and the neighbour the number 2. The
    /// neighbour reaches all other addresses through this namespace.
    pub fn new(link: &str, four: &str, six: &str) -> Self {
        let mut command = Command::new("unshare");
        // `cat` ends with the end of this process.
        command.args(["--net", "--", "sh", "-c", "echo; exec cat"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().expect("unshare runs");
        let mut ready = process.stdout.take().expect("piped");
        std::io::Read::read(&mut ready, &mut [0]).expect("the neighbour exists");
        let id = process.id();
        let neighbour = Self { process };
        shell(&format!(
            "ip link add {link} type veth peer name eth0 netns {id}
             ip addr add {four}.1/24 dev {link}
             ip addr add {six}::1/64 dev {link} nodad
             ip link set {link} up
             nsenter --net={} sh -ec '
                 ip link set lo up
                 ip addr add {four}.2/24 dev eth0
                 ip addr add {six}::2/64 dev eth0 nodad
                 ip link set eth0 up
                 ip route add default via {four}.1
                 ip -6 route add default via {six}::1'",
            neighbour.path().display()
        ));
        neighbour
    }

    /// Returns the id of a process in the namespace.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Returns the file that stands for the namespace.
    pub fn path(&self) -> PathBuf {
        format!("/proc/{}/ns/net", self.id()).into()
    }

    /// Calls `act` in the neighbour's namespace. Sockets that `act` opens stay there.
    pub fn run<T: Send>(&self, act: impl FnOnce() -> T + Send) -> T {
        let namespace = File::open(self.path()).expect("it exists");
        let run = move || {
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))
                .expect("this process may enter it");
            act()
        };
        std::thread::scope(|scope| scope.spawn(run).join()).expect("no panic")
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        let _ended_already = self.process.kill();
        let _ended_already = self.process.wait();
    }
}
