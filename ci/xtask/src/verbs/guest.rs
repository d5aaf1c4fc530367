//! The virtual machines: starts them with their jobs, and ends them in time.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
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

/// How long the socket between two guests is awaited. Without it, the QEMU of the second guest
/// ends with an error.
const WIRE_LIMIT: Duration = Duration::from_secs(20);

/// Jobs that run in one guest, or across two that are connected.
pub struct GuestRun<'a> {
    pub jobs: Vec<&'a GuestJob>,
    /// True if there are two guests.
    pub pair: bool,
    /// The time after which the guests are ended.
    pub limit: Duration,
}

impl GuestRun<'_> {
    /// Returns a word for messages and the names of the guests' directories.
    fn kind(&self) -> &'static str {
        if self.pair { "pair" } else { "one" }
    }
}

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
        let mut script = process::limited(Duration::from_secs(120), scripts.join("initramfs.sh"));
        process::run(script.arg(&kernel).arg(&initramfs))?;

        let program = dir.join("ticks");
        let mut cc = Command::new("cc");
        cc.arg("-O1").arg("-o").arg(&program);
        process::run(cc.arg(scripts.join("ticks.c")))?;
        let ticks = process::capture(&mut Command::new(&program))?;

        Ok(Bed {
            scripts,
            dir: dir.to_owned(),
            image: kernel::image(&kernel)?,
            modules: kernel.join("lib/modules"),
            initramfs,
            ticks: ticks.trim().to_owned(),
        })
    }

    /// Runs jobs to their end. Returns a report of each.
    pub fn run(&self, run: &GuestRun<'_>) -> Result<Vec<GuestReport>> {
        println!(
            "\n{} jobs in {} of guests, at most {} s",
            run.jobs.len(),
            run.kind(),
            run.limit.as_secs()
        );
        let start = Instant::now();

        // A run that was killed leaves the socket. Usually there is none.
        let wire = self.wire();
        let _ = fs::remove_file(&wire);

        let mut guests = vec![self.start(run, 1)?];
        if run.pair {
            // The second guest connects to the socket that the first one makes.
            while !wire.exists() && start.elapsed() < WIRE_LIMIT {
                thread::sleep(Duration::from_millis(50));
            }
            guests.push(self.start(run, 2)?);
        }
        for guest in &mut guests {
            guest.qemu.wait()?;
        }

        let seconds = start.elapsed().as_secs_f64();
        println!("the guests ended after {seconds:.0} s");
        if run.pair {
            // Empty if the second guest has not complained; missing if its server has not started.
            let log = self.guest_dir(run, 2).join("served.log");
            for line in fs::read_to_string(log).unwrap_or_default().lines() {
                println!("the second guest: {line}");
            }
        }

        // The first guest starts all jobs.
        let names = run.jobs.iter().map(|job| job.name.as_str());
        Ok(GuestReport::read(&self.guest_dir(run, 1), names))
    }

    /// Returns the path of the socket that connects the NICs of a pair of guests.
    fn wire(&self) -> PathBuf {
        self.dir.join("wire")
    }

    fn guest_dir(&self, run: &GuestRun<'_>, number: u32) -> PathBuf {
        self.dir.join(format!("{}-{number}", run.kind()))
    }

    fn start(&self, run: &GuestRun<'_>, number: u32) -> Result<Guest> {
        let dir = self.guest_dir(run, number);
        self.prepare(&dir, &run.jobs)?;

        let mut command = self.qemu(&dir, number, run);
        if run.pair {
            let server = if number == 1 { "on" } else { "off" };
            let netdev = format!(
                "stream,id=n0,server={server},addr.type=unix,addr.path={}",
                self.wire().display()
            );
            let device = format!("virtio-net-pci,netdev=n0,mac=52:54:00:00:00:0{number},romfile=");
            command.args(["-netdev", &netdev, "-device", &device]);
        }
        let qemu = command.spawn().context("qemu could not be started")?;
        Ok(Guest { qemu })
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

        let mut list = String::new();
        for job in jobs {
            let seconds = job.limit.as_secs();
            list += &format!("{}\t{seconds}\t{}\n", job.name, job.command);
        }
        fs::write(dir.join("jobs"), list)?;
        Ok(())
    }

    /// Returns the command that starts a guest without a network.
    fn qemu(&self, dir: &Path, number: u32, run: &GuestRun<'_>) -> Command {
        let accelerator = std::env::var(ACCELERATOR).unwrap_or_else(|_| INTERPRETED.into());
        let mut command = process::limited(run.limit, "qemu-system-x86_64");
        command
            .args(["-accel", &accelerator])
            .args(["-machine", "q35,hpet=off", "-cpu", "max"])
            .args(["-smp", PROCESSORS, "-m", MEGABYTES])
            .args(["-nodefaults", "-display", "none", "-serial", "stdio"])
            .args(["-no-reboot", "-device", "virtio-rng-pci"]);

        let command_line = format!(
            "{COMMAND_LINE} tsc_early_khz={} guest={number} pair={}",
            self.ticks,
            u8::from(run.pair)
        );
        command
            .arg("-kernel")
            .arg(&self.image)
            .arg("-initrd")
            .arg(&self.initramfs)
            .args(["-append", &command_line]);

        // The guest changes only its own directory.
        command
            .args(["-virtfs", &share(Path::new("/"), "root", ",readonly=on")])
            .args(["-virtfs", &share(dir, "out", "")])
            .args(["-virtfs", &share(&self.modules, "modules", ",readonly=on")]);

        // Without the file, the guest runs all the same.
        let log = fs::File::create(dir.join("console.log"));
        command.stdout(log.map_or_else(|_| Stdio::null(), Stdio::from));
        command
    }
}

/// Returns QEMU's description of a directory that a guest mounts by its tag.
fn share(path: &Path, tag: &str, access: &str) -> String {
    format!(
        "local,path={},mount_tag={tag},security_model=none,multidevs=remap{access}",
        path.display()
    )
}

/// A running guest, which is ended when this is dropped.
struct Guest {
    qemu: Child,
}

impl Drop for Guest {
    fn drop(&mut self) {
        if let Ok(None) = self.qemu.try_wait() {
            // Sends SIGTERM to `timeout`, which forwards it to QEMU. SIGKILL would leave the guest
            // running. It fails if `timeout` has ended meanwhile.
            let _ = process::run(Command::new("kill").arg(self.qemu.id().to_string()));
            let _ = self.qemu.wait();
        }
    }
}
