//! The virtual machines: starts them with their jobs, and ends them in time.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use task_support::process;
use task_support::workspace::Workspace;

use super::jobs::GuestJob;
use super::kernel;
use super::table::GuestReport;

pub const SCRIPTS: &str = "ci/scripts/verbs";

/// The variable that names QEMU's accelerator. By default QEMU interprets the processor, which
/// works everywhere. `kvm` is faster on real hardware, but some virtual machines offer a `/dev/kvm`
/// that is slower than QEMU's interpreter, which only the start of a guest shows.
const ACCELERATOR: &str = "RUSHMEM_VERBS_ACCEL";
const INTERPRETED: &str = "tcg,thread=multi,tb-size=512";

/// The number of processors of a guest. With one, a program that polls would starve the NIC, which
/// is a part of the kernel.
const PROCESSORS: &str = "2";
/// The memory of a guest. shmem-verify opens contexts until all 32 workers of UCX are in use, each
/// of which takes about 80 MB over verbs: 5.2 GB for two PEs.
const MEGABYTES: &str = "7168";

/// The kernel's options. `no_timer_check`: on a busy machine a guest may take its timer for a
/// broken one. For the same reason [`Bed::qemu`] tells the guest the frequency of its clock.
const COMMAND_LINE: &str = "console=ttyS0 quiet panic=-1 mitigations=off nokaslr \
    random.trust_cpu=on no_timer_check tsc=reliable";

/// The files from which guests are started.
pub struct Bed {
    scripts: PathBuf,
    dir: PathBuf,
    image: PathBuf,
    modules: PathBuf,
    initramfs: PathBuf,
    /// The frequency of the time stamp counter, in kHz.
    ticks: String,
}

impl Bed {
    /// Prepares the files for this kernel in `dir`.
    pub fn new(workspace: &Workspace, dir: &Path, kernel: PathBuf) -> Result<Bed> {
        let scripts = workspace.root.join(SCRIPTS);
        let initramfs = dir.join("initramfs.gz");
        process::run(
            process::limited(Duration::from_secs(120), scripts.join("initramfs.sh"))
                .arg(&kernel)
                .arg(&initramfs),
        )?;

        let ticks = dir.join("ticks");
        process::run(
            Command::new("cc")
                .arg("-O1")
                .arg("-o")
                .arg(&ticks)
                .arg(scripts.join("ticks.c")),
        )?;
        let ticks = process::capture(&mut Command::new(&ticks))?
            .trim()
            .to_owned();

        Ok(Bed {
            scripts,
            dir: dir.to_owned(),
            image: kernel::image(&kernel)?,
            modules: kernel.join("lib/modules"),
            initramfs,
            ticks,
        })
    }

    /// Runs these jobs in one guest or a pair of guests. Returns a report of each job.
    pub fn run(&self, jobs: &[&GuestJob], pair: bool, limit: Duration) -> Result<Vec<GuestReport>> {
        let kind = if pair { "pair" } else { "one" };
        println!(
            "\n{} jobs in {kind} of guests, at most {} s",
            jobs.len(),
            limit.as_secs()
        );
        let wire = self.dir.join("wire");
        let start = Instant::now();
        let mut guests = Vec::new();
        let mut first = PathBuf::new();
        for number in 1..=1 + u32::from(pair) {
            let dir = self.dir.join(format!("{kind}-{number}"));
            self.prepare(&dir, jobs)?;
            let mut command = self.qemu(&dir, number, pair, limit);
            if pair {
                let server = if number == 1 { "on" } else { "off" };
                let netdev = format!(
                    "stream,id=n0,server={server},addr.type=unix,addr.path={}",
                    wire.display()
                );
                let device =
                    format!("virtio-net-pci,netdev=n0,mac=52:54:00:00:00:0{number},romfile=");
                command.args(["-netdev", &netdev, "-device", &device]);
            }
            if number == 1 {
                let _ = fs::remove_file(&wire);
                first.clone_from(&dir);
            }
            guests.push(Guest(command.spawn().context("qemu could not be started")?));
            while pair && number == 1 && !wire.exists() && start.elapsed() < Duration::from_secs(20)
            {
                std::thread::sleep(Duration::from_millis(50));
            }
        }
        for guest in &mut guests {
            guest.0.wait()?;
        }
        println!(
            "the guests ended after {:.0} s",
            start.elapsed().as_secs_f64()
        );
        let complaints = fs::read_to_string(self.dir.join("pair-2/served.log"));
        if pair && let Ok(complaints) = complaints {
            complaints
                .lines()
                .for_each(|line| println!("the second guest: {line}"));
        }
        Ok(GuestReport::read(
            &first,
            jobs.iter().map(|job| job.name.as_str()),
        ))
    }

    /// Empties a guest's directory, and writes its scripts and its list of jobs to it.
    fn prepare(&self, dir: &Path, jobs: &[&GuestJob]) -> Result<()> {
        if dir.is_dir() {
            fs::remove_dir_all(dir)?;
        }
        fs::create_dir_all(dir)?;
        for script in ["guest.sh", "elsewhere.sh", "served.sh"] {
            fs::copy(self.scripts.join(script), dir.join(script))
                .with_context(|| format!("could not copy {script}"))?;
        }
        let line =
            |job: &&GuestJob| format!("{}\t{}\t{}\n", job.name, job.limit.as_secs(), job.command);
        fs::write(dir.join("jobs"), jobs.iter().map(line).collect::<String>())?;
        Ok(())
    }

    fn qemu(&self, dir: &Path, number: u32, pair: bool, limit: Duration) -> Command {
        let share = |path: &Path, tag: &str, access: &str| {
            format!(
                "local,path={},mount_tag={tag},security_model=none,multidevs=remap{access}",
                path.display()
            )
        };
        let accelerator = std::env::var(ACCELERATOR).unwrap_or_else(|_| INTERPRETED.into());
        let command_line = format!(
            "{COMMAND_LINE} tsc_early_khz={} guest={number} pair={}",
            self.ticks,
            u8::from(pair)
        );
        let log = fs::File::create(dir.join("console.log"));
        let mut command = process::limited(limit, "qemu-system-x86_64");
        command
            .args([
                "-accel",
                &accelerator,
                "-machine",
                "q35,hpet=off",
                "-cpu",
                "max",
            ])
            .args([
                "-smp",
                PROCESSORS,
                "-m",
                MEGABYTES,
                "-nodefaults",
                "-display",
                "none",
            ])
            .args([
                "-serial",
                "stdio",
                "-no-reboot",
                "-device",
                "virtio-rng-pci",
            ])
            .arg("-kernel")
            .arg(&self.image)
            .arg("-initrd")
            .arg(&self.initramfs)
            .args(["-append", &command_line])
            .args(["-virtfs", &share(Path::new("/"), "root", ",readonly=on")])
            .args(["-virtfs", &share(dir, "out", "")])
            .args(["-virtfs", &share(&self.modules, "modules", ",readonly=on")])
            .stdout(log.map_or_else(|_| Stdio::null(), Stdio::from));
        command
    }
}

/// A running guest, which is ended when this is dropped.
struct Guest(Child);

impl Drop for Guest {
    fn drop(&mut self) {
        if let Ok(None) = self.0.try_wait() {
            // Sends SIGTERM to `timeout`, which forwards it to QEMU. SIGKILL would leave the guest
            // running.
            let _ = process::run(Command::new("kill").arg(self.0.id().to_string()));
            let _ = self.0.wait();
        }
    }
}
