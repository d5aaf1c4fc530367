//! Reads the description of a machine from libhwloc into plain data. This is the only file of the
//! crate with unsafe code.
//!
//! References to objects of hwloc borrow their topology ([`Loaded`]) and do not leave this file.
#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::null_mut;

use hwloc_sys as hw;
use hwloc_sys::{Hwloc, hwloc_obj, hwloc_topology_t};

use crate::cpus::CpuSet;
use crate::model::{Nic, NicKind, Numa, Topology};

/// Components of hwloc that query accelerators and displays. The answers are not needed, and the
/// queries take long.
const NOT_NEEDED: [&CStr; 6] = [c"opencl", c"cuda", c"nvml", c"rsmi", c"levelzero", c"gl"];

/// The PCI vendor of Slingshot NICs.
const SLINGSHOT: u16 = 0x17db;

/// The PCI class of InfiniBand NICs.
const INFINIBAND: u16 = 0x0207;

/// Returns the machine that this process runs on.
///
/// # Errors
/// When there is no libhwloc of version 2, hwloc cannot describe this machine, or environment
/// variables make it describe another one.
pub(crate) fn this_machine() -> Result<Topology, String> {
    let loaded = Unloaded::new()?
        .load()
        .map_err(|error| format!("hwloc cannot describe this machine: {error}"))?;
    if !loaded.is_this_machine() {
        return Err("hwloc's environment variables describe another machine".to_owned());
    }
    Ok(loaded.topology(format!("this machine (hwloc {})", loaded.version())))
}

/// Returns the machine that a file describes.
pub(crate) fn xml(file: &Path) -> Result<Topology, String> {
    let shown = file.display();
    let unloaded = Unloaded::new()?;
    // hwloc does not say why it cannot read a file.
    std::fs::metadata(file).map_err(|error| format!("{shown} cannot be read: {error}"))?;
    let path = CString::new(file.as_os_str().as_bytes()).map_err(|_| "a zero byte in a path")?;

    // SAFETY: the topology is not loaded yet, and the path ends with a zero.
    let status = unsafe {
        let hwloc = unloaded.0.hwloc;
        hwloc.hwloc_topology_set_xml(unloaded.0.raw, path.as_ptr())
    };
    if status == 0
        && let Ok(loaded) = unloaded.load()
    {
        return Ok(loaded.topology(shown.to_string()));
    }
    Err(format!(
        "{shown} is not a machine description that this version of hwloc can read"
    ))
}

/// Returns the machine that a synthetic description describes.
pub(crate) fn synthetic(words: &str) -> Result<Topology, String> {
    let unloaded = Unloaded::new()?;
    let text = CString::new(words).map_err(|_| "a zero byte in a description")?;

    // SAFETY: the topology is not loaded yet, and the string ends with a zero.
    let status = unsafe {
        let hwloc = unloaded.0.hwloc;
        hwloc.hwloc_topology_set_synthetic(unloaded.0.raw, text.as_ptr())
    };
    if status == 0
        && let Ok(loaded) = unloaded.load()
    {
        return Ok(loaded.topology(words.to_owned()));
    }
    Err(format!(
        "\"{words}\" is not a description of a machine; an example is package:2 core:4 pu:2"
    ))
}

/// A topology of hwloc, which is destroyed when it is dropped.
struct Handle {
    hwloc: &'static Hwloc,
    raw: hwloc_topology_t,
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: `Unloaded::new` has made the topology, and it is destroyed once; references into
        // it borrow the handle.
        unsafe { self.hwloc.hwloc_topology_destroy(self.raw) };
    }
}

/// A topology that is not loaded yet. It has no objects.
struct Unloaded(Handle);

/// A loaded topology.
struct Loaded(Handle);

impl Unloaded {
    fn new() -> Result<Unloaded, String> {
        let hwloc = hw::open()?;
        let mut raw = null_mut();
        // SAFETY: the call writes a handle to `raw` if it succeeds.
        if unsafe { hwloc.hwloc_topology_init(&raw mut raw) } != 0 {
            return Err("hwloc has no memory for a topology".to_owned());
        }
        let unloaded = Unloaded(Handle { hwloc, raw });

        for name in NOT_NEEDED {
            let flags = hw::HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST.into();
            // The call fails if hwloc has no such component, which does no harm.
            // SAFETY: the topology is not loaded yet, and `name` is a C string.
            unsafe { hwloc.hwloc_topology_set_components(raw, flags, name.as_ptr()) };
        }

        let filter = hw::HWLOC_TYPE_FILTER_KEEP_IMPORTANT;
        // If the call fails, the topology has no NICs.
        // SAFETY: the topology is not loaded yet.
        unsafe { hwloc.hwloc_topology_set_io_types_filter(raw, filter) };
        Ok(unloaded)
    }

    /// Loads the description that was set, or otherwise this machine.
    fn load(self) -> io::Result<Loaded> {
        let Unloaded(handle) = self;
        // SAFETY: the topology is not loaded yet.
        if unsafe { handle.hwloc.hwloc_topology_load(handle.raw) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Loaded(handle))
    }
}

impl Loaded {
    fn version(&self) -> String {
        // SAFETY: the call has no preconditions.
        let version = unsafe { self.0.hwloc.hwloc_get_api_version() };
        format!("interface {}.{}", version >> 16, version >> 8 & 0xff)
    }

    fn is_this_machine(&self) -> bool {
        // SAFETY: the topology is loaded.
        unsafe { self.0.hwloc.hwloc_topology_is_thissystem(self.0.raw) == 1 }
    }

    /// Returns the objects at a depth, in hwloc's order: objects that are close to each other
    /// follow each other.
    fn at_depth(&self, depth: c_int) -> impl Iterator<Item = &hwloc_obj> {
        // SAFETY: the topology is loaded; a depth that does not exist has no objects.
        let count = unsafe { self.0.hwloc.hwloc_get_nbobjs_by_depth(self.0.raw, depth) };
        (0..count).filter_map(move |index| {
            // SAFETY: the topology is loaded; the result is null beyond the last object.
            let object = unsafe {
                self.0
                    .hwloc
                    .hwloc_get_obj_by_depth(self.0.raw, depth, index)
            };
            // SAFETY: an object lives, unchanged, as long as the topology, which is borrowed.
            unsafe { object.as_ref() }
        })
    }

    fn of_type(&self, kind: hw::hwloc_obj_type_t) -> impl Iterator<Item = &hwloc_obj> {
        // SAFETY: the topology is loaded; the result is negative for types without a depth here.
        let depth = unsafe { self.0.hwloc.hwloc_get_type_depth(self.0.raw, kind) };
        self.at_depth(depth)
    }

    fn cpus(&self, set: hw::hwloc_const_bitmap_t) -> CpuSet {
        if set.is_null() {
            return CpuSet::default();
        }

        // -1 asks for the first CPU, and the result -1 says that there is no further one.
        // SAFETY: a bitmap of the topology, which is borrowed.
        let next = |after: c_int| unsafe { self.0.hwloc.hwloc_bitmap_next(set, after) };

        let mut cpus = CpuSet::default();
        let mut cpu = next(-1);
        while let Ok(number) = u32::try_from(cpu) {
            cpus.insert(number);
            cpu = next(cpu);
        }
        cpus
    }

    fn topology(&self, source: String) -> Topology {
        // SAFETY: the topology is loaded; the bitmap lives as long as it.
        let allowed = unsafe { self.0.hwloc.hwloc_topology_get_allowed_cpuset(self.0.raw) };

        let mut notes = Vec::new();
        let nics = self.nics(&mut notes);
        Topology {
            source,
            notes,
            packages: self.cpu_sets(hw::HWLOC_OBJ_PACKAGE),
            numa: self.numa(),
            l3: self.cpu_sets(hw::HWLOC_OBJ_L3CACHE),
            cores: self.cpu_sets(hw::HWLOC_OBJ_CORE),
            nics,
            usable: self.cpus(allowed),
        }
    }

    /// Returns the CPUs of each object of a type.
    fn cpu_sets(&self, kind: hw::hwloc_obj_type_t) -> Vec<CpuSet> {
        self.of_type(kind)
            .map(|object| self.cpus(object.cpuset))
            .collect()
    }

    /// Returns the NUMA nodes with CPUs.
    fn numa(&self) -> Vec<Numa> {
        let mut numa = Vec::new();
        for object in self.of_type(hw::HWLOC_OBJ_NUMANODE) {
            let cpus = self.cpus(object.cpuset);
            if cpus.is_empty() {
                continue;
            }

            // SAFETY: null, or the attributes of objects of this type, which live as long as it.
            let attributes = unsafe { object.attr.cast::<hw::hwloc_numanode_attr_s>().as_ref() };
            numa.push(Numa {
                index: object.os_index,
                nbytes: attributes.map_or(0, |attributes| attributes.local_memory),
                cpus,
            });
        }
        numa
    }

    /// Returns the NICs of the machine, and adds a note on each that is down.
    fn nics(&self, notes: &mut Vec<String>) -> Vec<Nic> {
        // By their addresses: the objects of one device need not follow each other.
        let mut device_nics: BTreeMap<String, DeviceNic> = BTreeMap::new();
        for device in self.at_depth(hw::HWLOC_TYPE_DEPTH_OS_DEVICE) {
            // SAFETY: null, or the attributes of objects of this type, which live as long as it.
            let attributes = unsafe { device.attr.cast::<hw::hwloc_osdev_attr_s>().as_ref() };
            let Some(attributes) = attributes else {
                continue;
            };
            let Some(found) = self.device_nic(device) else {
                continue;
            };

            let device_nic = device_nics
                .entry(found.pci.address.clone())
                .or_insert(found);
            match attributes.type_ {
                hw::HWLOC_OBJ_OSDEV_OPENFABRICS => device_nic.fabric.push(FabricDevice {
                    name: text(device.name),
                    ports: ports(device),
                }),
                hw::HWLOC_OBJ_OSDEV_NETWORK => device_nic.interfaces.push(text(device.name)),
                _ => {}
            }
        }

        let mut nics = Vec::new();
        for device_nic in device_nics.into_values() {
            nics.extend(device_nic.nics(notes));
        }
        nics
    }

    /// Returns the PCI device that an object belongs to, and the CPUs near it, without fabric
    /// devices and interfaces; `None` for an object that belongs to none.
    fn device_nic(&self, device: &hwloc_obj) -> Option<DeviceNic> {
        let pci = std::iter::successors(Some(device), |object| parent(object))
            .find(|object| object.type_ == hw::HWLOC_OBJ_PCI_DEVICE)?;
        // Devices have no CPUs of their own in hwloc, but what they are attached to has.
        let near = std::iter::successors(Some(pci), |object| parent(object))
            .find(|object| !object.cpuset.is_null());
        let near = match near {
            Some(object) => self.cpus(object.cpuset),
            None => CpuSet::default(),
        };

        // SAFETY: null, or the attributes of objects of this type, which live as long as it.
        let attributes = unsafe { pci.attr.cast::<hw::hwloc_pcidev_attr_s>().as_ref() }?;
        let pci = Pci {
            address: format!(
                "{:04x}:{:02x}:{:02x}.{:x}",
                attributes.domain, attributes.bus, attributes.dev, attributes.func
            ),
            class: attributes.class_id,
            vendor: attributes.vendor_id,
        };
        Some(DeviceNic {
            pci,
            near,
            fabric: Vec::new(),
            interfaces: Vec::new(),
        })
    }
}

struct Pci {
    address: String,
    class: u16,
    vendor: u16,
}

/// A PCI device in hwloc, with the fabric devices and the network interfaces that it has.
struct DeviceNic {
    pci: Pci,
    near: CpuSet,
    fabric: Vec<FabricDevice>,
    interfaces: Vec<String>,
}

/// A device that hwloc lists as one of OpenFabrics, such as `mlx5_0`.
struct FabricDevice {
    name: String,
    ports: Vec<Port>,
}

struct Port {
    number: u32,
    is_up: bool,
}

impl DeviceNic {
    /// Returns the NICs of the device, and adds a note on each that is down.
    fn nics(self, notes: &mut Vec<String>) -> Vec<Nic> {
        let DeviceNic {
            pci,
            near,
            mut fabric,
            interfaces,
        } = self;

        // Versions of hwloc that do not know Slingshot report only the network interfaces. Each has
        // the number of its device.
        if fabric.is_empty() && pci.vendor == SLINGSHOT {
            for interface in &interfaces {
                if let Some(number) = interface.strip_prefix("hsn") {
                    fabric.push(FabricDevice {
                        name: format!("cxi{number}"),
                        ports: Vec::new(),
                    });
                }
            }
        }

        let nic = |name: String, kind, port, interface| Nic {
            name,
            kind,
            port,
            interface,
            pci: pci.address.clone(),
            is_infiniband: pci.class == INFINIBAND,
            near: near.clone(),
        };
        if fabric.is_empty() {
            return interfaces
                .into_iter()
                .map(|name| nic(name.clone(), NicKind::Ethernet, None, Some(name)))
                .collect();
        }

        let interface = interfaces.first();
        let mut nics = Vec::new();
        for FabricDevice { name, ports } in fabric {
            let up = ports.iter().find(|port| port.is_up);
            if !ports.is_empty() && up.is_none() {
                notes.push(format!("{name} has no port that is up"));
                continue;
            }
            let port = up.map(|port| port.number);
            nics.push(nic(name, NicKind::Fabric, port, interface.cloned()));
        }
        nics
    }
}

fn parent(object: &hwloc_obj) -> Option<&hwloc_obj> {
    // SAFETY: the pointer is null at the root, or to an object of the same topology.
    unsafe { object.parent.as_ref() }
}

fn text(string: *const c_char) -> String {
    if string.is_null() {
        return String::new();
    }
    // SAFETY: a string of an object, which ends with a zero.
    unsafe { CStr::from_ptr(string) }
        .to_string_lossy()
        .into_owned()
}

/// Returns the ports of a fabric device, of which hwloc has texts such as `Port1State` and `4`.
fn ports(device: &hwloc_obj) -> Vec<Port> {
    let mut ports = Vec::new();
    for index in 0..device.infos_count {
        // SAFETY: `infos` has `infos_count` entries.
        let info = unsafe { device.infos.add(index as usize) };
        // SAFETY: one of the `infos_count` entries, which the library has filled.
        let info = unsafe { info.read() };

        let name = text(info.name);
        let number = name
            .strip_prefix("Port")
            .and_then(|rest| rest.strip_suffix("State"));
        if let Some(number) = number.and_then(|number| number.parse().ok()) {
            // 4 is the kernel's number for the state of an active port.
            let is_up = text(info.value).starts_with('4');
            ports.push(Port { number, is_up });
        }
    }
    ports
}
