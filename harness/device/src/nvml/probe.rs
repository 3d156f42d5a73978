//! Raw NVML replies about a GPU: each call with its return code for this user, and the bytes of the process lists.
//!
//! In: an open library and a GPU. Out: JSON to be read elsewhere, showing what a real driver answers. Nothing here is
//! interpreted; a refused call is as informative as an answer.

use nvml_wrapper::Nvml;
use nvml_wrapper_sys::bindings as b;
use serde_json::{Map, Value, json};

/// Room for processes, in entries twice as long as any driver writes: 535.43 to 535.86 write 32 bytes each where the header says
/// 24 (nvitop #88), and would write past the end of a list of the right length.
const PROCESSES: u32 = 64;
const ENTRY: usize = 64;
/// More than any driver has; missing ones return an error.
const PROFILES: u32 = 32;
const MIG_DEVICES: u32 = 16;

/// A call's answer: `{"rc": 0, "value": …}`, or why there was none.
fn answer(rc: Option<u32>, value: impl FnOnce() -> Value) -> Value {
    match rc {
        None => json!({"rc": null, "why": "the driver has no such function"}),
        Some(0) => json!({"rc": 0, "value": value()}),
        Some(rc) => json!({"rc": rc}),
    }
}

/// Call a function of the library, if it has it. Arguments are handles from the library, and pointers to values that outlive the
/// call.
macro_rules! ask {
    ($nvml:expr, $name:ident, $($argument:expr),*) => {
        match $nvml.lib().$name.as_ref() {
            // SAFETY: as NVML's header has it; every pointer is to a value of this function with the room that is said.
            Ok(call) => Some(unsafe { call($($argument),*) } as u32),
            Err(_) => None,
        }
    };
}

/// A number from a function that takes a device and an output pointer.
macro_rules! number {
    ($nvml:expr, $device:expr, $name:ident) => {{
        let mut value = 0;
        let rc = ask!($nvml, $name, $device, &mut value);
        (stringify!($name).to_string(), answer(rc, || json!(value)))
    }};
}

/// All queries about the GPU with this UUID, or why it cannot be queried.
pub fn probe(nvml: &Nvml, uuid: &str) -> Value {
    let namespace = std::fs::read_link("/proc/self/ns/pid").map(|n| n.to_string_lossy().into_owned()).ok();
    let driver = nvml.sys_driver_version().map_err(|e| e.to_string());
    let library = nvml.sys_nvml_version().map_err(|e| e.to_string());
    let mut all = json!({
        "euid": nix::unistd::geteuid().as_raw(),
        "pid_namespace": namespace,
        "driver": driver.as_ref().ok(),
        "nvml": library.as_ref().ok(),
    });
    let card = match nvml.device_by_uuid(uuid) {
        Ok(card) => card,
        Err(e) => {
            all["card"] = json!({"refused": super::text(&e)});
            return all;
        }
    };
    // SAFETY: the handle is used while the library that gave it is open.
    let handle = unsafe { card.handle() };
    all["card"] = json!({
        "uuid": uuid,
        "name": card.name().ok(),
        "calls": Value::Object(calls(nvml, handle)),
        "processes": lists(nvml, handle),
        "profiles": (0..PROFILES).filter_map(|index| profile(nvml, handle, index)).collect::<Vec<_>>(),
        "mig_devices": (0..MIG_DEVICES).filter_map(|index| mig_device(nvml, handle, index)).collect::<Vec<_>>(),
    });
    all
}

fn calls(nvml: &Nvml, device: b::nvmlDevice_t) -> Map<String, Value> {
    let mut all: Map<String, Value> = [
        number!(nvml, device, nvmlDeviceGetMinorNumber),
        number!(nvml, device, nvmlDeviceGetPersistenceMode),
        number!(nvml, device, nvmlDeviceGetComputeMode),
        number!(nvml, device, nvmlDeviceGetPowerUsage),
        number!(nvml, device, nvmlDeviceGetPowerManagementLimit),
        number!(nvml, device, nvmlDeviceGetPowerManagementDefaultLimit),
        number!(nvml, device, nvmlDeviceGetEnforcedPowerLimit),
        number!(nvml, device, nvmlDeviceGetTotalEnergyConsumption),
        number!(nvml, device, nvmlDeviceGetNumGpuCores),
        number!(nvml, device, nvmlDeviceGetMaxMigDeviceCount),
    ]
    .into_iter()
    .collect();
    let (mut current, mut pending) = (0, 0);
    let rc = ask!(nvml, nvmlDeviceGetMigMode, device, &mut current, &mut pending);
    all.insert("nvmlDeviceGetMigMode".into(), answer(rc, || json!([current, pending])));
    let mut rates = b::nvmlUtilization_t { gpu: 0, memory: 0 };
    let rc = ask!(nvml, nvmlDeviceGetUtilizationRates, device, &mut rates);
    all.insert("nvmlDeviceGetUtilizationRates".into(), answer(rc, || json!([rates.gpu, rates.memory])));
    // SAFETY: a plain struct of integers, for which all zeros is a value.
    let mut memory: b::nvmlMemory_v2_t = unsafe { std::mem::zeroed() };
    memory.version = size_of_val(&memory) as u32 | (2 << 24);
    let rc = ask!(nvml, nvmlDeviceGetMemoryInfo_v2, device, &mut memory);
    let told = json!({"total": memory.total, "reserved": memory.reserved, "free": memory.free, "used": memory.used});
    all.insert("nvmlDeviceGetMemoryInfo_v2".into(), answer(rc, || told));
    let mut support = b::nvmlGpmSupport_t { version: 1, isSupportedDevice: 0 };
    let rc = ask!(nvml, nvmlGpmQueryDeviceSupport, device, &mut support);
    all.insert("nvmlGpmQueryDeviceSupport".into(), answer(rc, || json!(support.isSupportedDevice)));
    all
}

/// Both process lists of a device, as bytes.
fn lists(nvml: &Nvml, device: b::nvmlDevice_t) -> Value {
    let one = |name: &str, call: &dyn Fn(&mut u32, *mut b::nvmlProcessInfo_t) -> Option<u32>| {
        let (mut count, mut room) = (PROCESSES, vec![0u64; PROCESSES as usize * ENTRY / 8]);
        let rc = call(&mut count, room.as_mut_ptr().cast());
        // As long as the longest entries that were ever seen; what lies behind the shorter ones is zeros.
        let bytes: Vec<u8> = room.iter().flat_map(|word| word.to_ne_bytes()).take(32 * count.min(PROCESSES) as usize).collect();
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        (name.to_string(), answer(rc, || json!({"count": count, "bytes": hex})))
    };
    let all: Map<String, Value> = [
        one("nvmlDeviceGetComputeRunningProcesses_v3", &|count, to| {
            ask!(nvml, nvmlDeviceGetComputeRunningProcesses_v3, device, count, to)
        }),
        one("nvmlDeviceGetMPSComputeRunningProcesses_v3", &|count, to| {
            ask!(nvml, nvmlDeviceGetMPSComputeRunningProcesses_v3, device, count, to)
        }),
        one("nvmlDeviceGetGraphicsRunningProcesses_v3", &|count, to| {
            ask!(nvml, nvmlDeviceGetGraphicsRunningProcesses_v3, device, count, to)
        }),
    ]
    .into_iter()
    .collect();
    Value::Object(all)
}

/// The driver's description of a size of instance; `None` if there is none with this number.
fn profile(nvml: &Nvml, device: b::nvmlDevice_t, index: u32) -> Option<Value> {
    // SAFETY: a plain struct of integers, for which all zeros is a value.
    let mut info: b::nvmlGpuInstanceProfileInfo_t = unsafe { std::mem::zeroed() };
    let rc = ask!(nvml, nvmlDeviceGetGpuInstanceProfileInfo, device, index, &mut info);
    // Not supported, or no such index: nothing is there to be told.
    if matches!(rc, Some(2 | 3)) {
        return None;
    }
    let told = json!({"id": info.id, "slices": info.sliceCount, "most": info.instanceCount, "sms": info.multiprocessorCount,
        "memory_mib": info.memorySizeMB, "copy": info.copyEngineCount, "decode": info.decoderCount,
        "encode": info.encoderCount, "jpeg": info.jpegCount, "ofa": info.ofaCount});
    let mut places = 0;
    let placed = ask!(nvml, nvmlDeviceGetGpuInstancePossiblePlacements_v2, device, info.id, std::ptr::null_mut(), &mut places);
    let (mut count, mut handles) = (8, [std::ptr::null_mut(); 8]);
    let listed = ask!(nvml, nvmlDeviceGetGpuInstances, device, info.id, handles.as_mut_ptr(), &mut count);
    Some(json!({"index": index, "nvmlDeviceGetGpuInstanceProfileInfo": answer(rc, || told),
        "nvmlDeviceGetGpuInstancePossiblePlacements_v2": answer(placed, || json!(places)),
        "nvmlDeviceGetGpuInstances": answer(listed, || json!(count))}))
}

/// The properties of a MIG device, readable by every user; `None` if there is none with this number.
fn mig_device(nvml: &Nvml, parent: b::nvmlDevice_t, index: u32) -> Option<Value> {
    let mut device: b::nvmlDevice_t = std::ptr::null_mut();
    let rc = ask!(nvml, nvmlDeviceGetMigDeviceHandleByIndex, parent, index, &mut device);
    if matches!(rc, Some(2 | 3 | 6)) {
        return None;
    }
    if rc != Some(0) {
        return Some(json!({"index": index, "nvmlDeviceGetMigDeviceHandleByIndex": answer(rc, || Value::Null)}));
    }
    // SAFETY: a plain struct of integers, for which all zeros is a value.
    let mut has: b::nvmlDeviceAttributes_t = unsafe { std::mem::zeroed() };
    let rc = ask!(nvml, nvmlDeviceGetAttributes_v2, device, &mut has);
    let attributes = answer(rc, || {
        json!({"sms": has.multiprocessorCount, "gpu_slices": has.gpuInstanceSliceCount,
            "compute_slices": has.computeInstanceSliceCount, "memory_mib": has.memorySizeMB})
    });
    let (name, gi) = number!(nvml, device, nvmlDeviceGetGpuInstanceId);
    let (other, ci) = number!(nvml, device, nvmlDeviceGetComputeInstanceId);
    let text = |call: &dyn Fn(*mut std::os::raw::c_char, u32) -> Option<u32>| {
        let mut letters = [0; 96];
        let rc = call(letters.as_mut_ptr(), 96);
        answer(rc, || {
            let bytes: Vec<u8> = letters.iter().take_while(|c| **c != 0).map(|c| *c as u8).collect();
            json!(String::from_utf8_lossy(&bytes))
        })
    };
    let named = text(&|to, room| ask!(nvml, nvmlDeviceGetName, device, to, room));
    let uuid = text(&|to, room| ask!(nvml, nvmlDeviceGetUUID, device, to, room));
    Some(json!({"index": index, name: gi, other: ci, "nvmlDeviceGetAttributes_v2": attributes, "nvmlDeviceGetName": named,
        "nvmlDeviceGetUUID": uuid, "processes": lists(nvml, device)}))
}

/// How the energy counter moves: each new value, with its time, for this long.
pub fn energy_steps(nvml: &Nvml, uuid: &str, for_ns: u64) -> Value {
    let card = match nvml.device_by_uuid(uuid) {
        Ok(card) => card,
        Err(e) => return json!({"refused": super::text(&e)}),
    };
    let (began, mut last, mut steps) = (collo_store::monotonic_ns(), None, Vec::new());
    loop {
        let at_ns = collo_store::monotonic_ns().saturating_sub(began);
        match card.total_energy_consumption() {
            Ok(mj) if last != Some(mj) => {
                last = Some(mj);
                steps.push(json!({"at_ns": at_ns, "mj": mj}));
            }
            Ok(_) => {}
            Err(e) => return json!({"refused": super::text(&e), "steps": steps}),
        }
        if at_ns >= for_ns {
            return json!({"steps": steps});
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}
