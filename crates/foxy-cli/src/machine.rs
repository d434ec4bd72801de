//! Facts about the machine that determine default settings: memory, cores, and the user's folders.

use foxy_base::ByteSize;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Facts about the machine and the environment variables, as foxy found them at its start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// Memory in bytes that this process may use: the smaller of the machine's memory and the
    /// control-group limit. `None` if unknown.
    pub memory: Option<ByteSize>,
    /// Number of cores that this process may use, limited by CPU affinity and the control-group
    /// quota.
    pub cores: usize,
    /// This user's folder for caches.
    pub cache_folder: PathBuf,
    /// This user's folder for data.
    pub data_folder: PathBuf,
    /// Paths at which foxy looks for a configuration file, in order of preference.
    pub config_files: Vec<PathBuf>,
    /// The environment variables whose names begin with `FOXY_`, in alphabetical order.
    pub environment: Vec<(String, OsString)>,
}

impl Machine {
    /// Reads these facts from the system and the environment variables.
    pub fn look() -> Self {
        Self {
            memory: memory(Path::new("/")),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            cache_folder: cache_folder(
                std::env::var_os("XDG_CACHE_HOME"),
                std::env::var_os("HOME"),
            ),
            data_folder: data_folder(std::env::var_os("XDG_DATA_HOME"), std::env::var_os("HOME")),
            config_files: config_files(
                std::env::var_os("XDG_CONFIG_HOME"),
                std::env::var_os("HOME"),
            ),
            environment: variables(std::env::vars_os()),
        }
    }
}

fn variables(all: impl Iterator<Item = (OsString, OsString)>) -> Vec<(String, OsString)> {
    let own = |(name, value): (OsString, OsString)| {
        Some((name.into_string().ok().filter(|name| name.starts_with("FOXY_"))?, value))
    };
    let mut found: Vec<_> = all.filter_map(own).collect();
    found.sort();
    found
}

fn absolute(path: Option<OsString>) -> Option<PathBuf> {
    path.map(PathBuf::from).filter(|path| path.is_absolute() && path.parent().is_some())
}

fn cache_folder(xdg: Option<OsString>, home: Option<OsString>) -> PathBuf {
    let user = absolute(xdg).or_else(|| absolute(home).map(|home| home.join(".cache")));
    user.unwrap_or_else(|| "/var/cache".into()).join("foxy")
}

fn data_folder(xdg: Option<OsString>, home: Option<OsString>) -> PathBuf {
    let user = absolute(xdg).or_else(|| absolute(home).map(|home| home.join(".local/share")));
    user.unwrap_or_else(|| "/var/lib".into()).join("foxy")
}

fn config_files(xdg: Option<OsString>, home: Option<OsString>) -> Vec<PathBuf> {
    let user = absolute(xdg).or_else(|| absolute(home).map(|home| home.join(".config")));
    user.into_iter()
        .chain([PathBuf::from("/etc")])
        .map(|folder| folder.join("foxy/foxy.toml"))
        .collect()
}

fn memory(root: &Path) -> Option<ByteSize> {
    let machine = read(&root.join("proc/meminfo")).and_then(|text| total_memory(&text));
    let groups = read(&root.join("proc/self/cgroup")).unwrap_or_default();
    let limits = groups.lines().filter_map(|line| group_limit(root, line));
    machine.into_iter().chain(limits).min().map(ByteSize)
}

fn total_memory(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// Returns the smallest memory limit in bytes among a control group and all its parents. Returns
/// `None` if there is no limit. `line` is a line of `/proc/self/cgroup`: `0::/path` for version 2,
/// `N:memory:/path` for version 1 (cgroups(7)).
fn group_limit(root: &Path, line: &str) -> Option<u64> {
    let mut fields = line.splitn(3, ':');
    let (_, controllers, group) = (fields.next()?, fields.next()?, fields.next()?);
    let (mount, file) = if controllers.is_empty() {
        ("sys/fs/cgroup", "memory.max")
    } else if controllers.split(',').any(|name| name == "memory") {
        ("sys/fs/cgroup/memory", "memory.limit_in_bytes")
    } else {
        return None;
    };
    let mount = root.join(mount);
    let folder = mount.join(group.trim_start_matches('/'));
    let folders = folder.ancestors().take_while(|folder| folder.starts_with(&mount));
    folders.filter_map(|folder| read(&folder.join(file))?.trim().parse().ok()).min()
}

fn read(path: &Path) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(files: &[(&str, &str)]) -> Option<ByteSize> {
        let root = tempfile::tempdir().expect("a folder");
        for (path, content) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().expect("has one")).expect("made");
            std::fs::write(path, content).expect("written");
        }
        memory(root.path())
    }

    const MEMINFO: (&str, &str) = ("proc/meminfo", "MemTotal:        1024 kB\nMemFree: 3 kB\n");

    #[test]
    fn memory_is_the_machines_when_no_group_limits_it() {
        assert_eq!(machine(&[]), None);
        assert_eq!(machine(&[MEMINFO]), Some(ByteSize(1 << 20)));
        let unlimited =
            [MEMINFO, ("proc/self/cgroup", "0::/a\n"), ("sys/fs/cgroup/a/memory.max", "max\n")];
        assert_eq!(machine(&unlimited), Some(ByteSize(1 << 20)));
    }

    #[test]
    fn the_tightest_group_on_the_way_up_limits_memory() {
        let group = ("proc/self/cgroup", "0::/a/b\n");
        let outer = ("sys/fs/cgroup/a/memory.max", "4096\n");
        let inner = ("sys/fs/cgroup/a/b/memory.max", "8192\n");
        assert_eq!(machine(&[MEMINFO, group, outer, inner]), Some(ByteSize(4096)));
    }

    #[test]
    fn version_one_groups_count_too() {
        let group = ("proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/x\n");
        let limit = ("sys/fs/cgroup/memory/x/memory.limit_in_bytes", "65536\n");
        assert_eq!(machine(&[MEMINFO, group, limit]), Some(ByteSize(65_536)));
    }

    #[test]
    fn folders_come_from_the_environment_when_it_names_absolute_ones() {
        let some = |text: &str| Some(OsString::from(text));
        let cases = [
            (some("/x"), some("/home/u"), "/x/foxy"),
            (None, some("/home/u"), "/home/u/.cache/foxy"),
            (some("relative"), some("/home/u"), "/home/u/.cache/foxy"),
            (None, some("/"), "/var/cache/foxy"),
            (None, None, "/var/cache/foxy"),
        ];
        for (xdg, home, expected) in cases {
            assert_eq!(cache_folder(xdg, home), Path::new(expected));
        }
        assert_eq!(data_folder(some("/x"), some("/home/u")), Path::new("/x/foxy"));
        assert_eq!(data_folder(None, some("/home/u")), Path::new("/home/u/.local/share/foxy"));
        assert_eq!(data_folder(None, None), Path::new("/var/lib/foxy"));
        let files = config_files(None, some("/home/u"));
        assert_eq!(
            files,
            ["/home/u/.config/foxy/foxy.toml", "/etc/foxy/foxy.toml"].map(PathBuf::from)
        );
    }
}
