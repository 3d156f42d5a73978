use super::*;
use collo_gpus::mig::GpuModel;
use collo_plan::facts::{Address, SilentGpu};

fn gpu(index: u32) -> Gpu {
    let at = Some(Address { index, uuid: format!("GPU-{index}{index}-aa"), pci: format!("00000000:{:02X}:00.0", 7 + index) });
    Gpu { at, ..Gpu::planned(&GpuModel::bare("a100-40gb", 7)) }
}

fn machine(cards: u32) -> Driver {
    Driver { version: "580.95.05".into(), cuda: Some(13_000), gpus: (0..cards).map(gpu).collect(), silent: Vec::new() }
}

fn on(driver: &Driver, variables: &[(&str, &str)]) -> Result<Option<Vec<u32>>, String> {
    let value = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, v)| v.to_string());
    let found = Allocation::of(&value, driver).map_err(|e| e.to_string())?;
    Ok(found.map(|a| a.cards.into_iter().collect()))
}

fn cards(variables: &[(&str, &str)]) -> Result<Option<Vec<u32>>, String> {
    on(&machine(8), variables)
}

#[test]
fn without_a_word_every_card_is_ours() {
    assert_eq!(cards(&[]), Ok(None));
    assert_eq!(cards(&[(CONTAINER, "all")]), Ok(None));
    // As a base image says it, or where the container got its cards in another way.
    assert_eq!(cards(&[(CONTAINER, "void")]), Ok(None));
    assert_eq!(cards(&[(CONTAINER, "")]), Ok(None));
}

#[test]
fn cudas_list_ends_at_the_first_that_is_no_device() {
    assert_eq!(cards(&[(CUDA, "2,5")]), Ok(Some(vec![2, 5])));
    assert_eq!(cards(&[(CUDA, "2,-1,5")]), Ok(Some(vec![2])));
    assert_eq!(cards(&[(CUDA, "3,99,1")]), Ok(Some(vec![3])));
    assert_eq!(cards(&[(CUDA, "gpu-44")]), Ok(Some(vec![4])));
    for nothing in ["", "-1", "NoDevFiles", "none"] {
        assert!(cards(&[(CUDA, nothing)]).unwrap_err().contains("no GPU of this machine is allocated"), "{nothing}");
    }
}

#[test]
fn cuda_counts_a_display_last_unless_it_counts_by_the_bus() {
    let mut station = machine(3);
    station.gpus[0].display = true;
    assert_eq!(on(&station, &[(CUDA, "0")]), Ok(Some(vec![1])));
    assert_eq!(on(&station, &[(CUDA, "0"), (ORDER, "PCI_BUS_ID")]), Ok(Some(vec![0])));
}

#[test]
fn slurm_counts_the_whole_machine_unless_only_the_jobs_cards_are_shown() {
    assert_eq!(cards(&[("SLURM_JOB_GPUS", "4,5")]), Ok(Some(vec![4, 5])));
    assert_eq!(cards(&[("SLURM_JOB_GPUS", "0,2-3")]), Ok(Some(vec![0, 2, 3])));
    assert_eq!(cards(&[("SLURM_JOB_GPUS", "4-7"), ("SLURM_STEP_GPUS", "6")]), Ok(Some(vec![6])));
    // Confined to its devices: the driver shows two, counted anew.
    assert_eq!(on(&machine(2), &[("SLURM_JOB_GPUS", "4,5")]), Ok(Some(vec![0, 1])));
    assert_eq!(on(&machine(2), &[("SLURM_JOB_GPUS", "4,5"), (CUDA, "0,1")]), Ok(Some(vec![0, 1])));
    // CUDA's numbers begin anew inside the job, the driver still shows all.
    assert_eq!(cards(&[("SLURM_JOB_GPUS", "4,5"), (CUDA, "0,1")]), Ok(Some(vec![4, 5])));
    assert_eq!(cards(&[("SLURM_JOB_GPUS", "4,5"), (CUDA, "5")]), Ok(Some(vec![5])));
}

#[test]
fn a_containers_numbers_are_the_hosts_and_only_its_uuids_tell() {
    assert_eq!(on(&machine(2), &[(CONTAINER, "4,5")]), Ok(None));
    assert_eq!(on(&machine(2), &[(CONTAINER, "GPU-11-aa")]), Ok(Some(vec![1])));
    assert!(on(&machine(2), &[(CONTAINER, "none")]).is_err());
    assert_eq!(on(&machine(2), &[(CONTAINER, "GPU-11-aa,GPU-00-aa"), (CUDA, "1")]), Ok(Some(vec![1])));
    let apart = on(&machine(2), &[(CONTAINER, "GPU-11-aa"), (CUDA, "0")]).unwrap_err();
    assert!(apart.contains("CUDA_VISIBLE_DEVICES=0, NVIDIA_VISIBLE_DEVICES=GPU-11-aa"), "{apart}");
}

#[test]
fn a_choice_is_among_what_is_ours_and_says_who_decided() {
    let mut driver = machine(4);
    let value = |name: &str| (name == CUDA).then(|| "2,3".to_string());
    let allocation = Allocation::of(&value, &driver).unwrap().unwrap();
    let chosen = |driver: &Driver, text: &str| {
        let gpus = allocation.choose(&GpuSelector::parse(text), driver).map_err(|e| e.to_string())?;
        Ok::<_, String>(gpus.iter().filter_map(|g| Some(g.at.as_ref()?.index)).collect::<Vec<_>>())
    };
    assert_eq!(chosen(&driver, "auto"), Ok(vec![2]));
    assert_eq!(chosen(&driver, "3"), Ok(vec![3]));
    insta::assert_snapshot!(chosen(&driver, "0").unwrap_err(), @r"
    error: GPU 0 is not allocated to this process: `CUDA_VISIBLE_DEVICES=2,3`
    hint: leave out `--gpu`, or name one of 2, 3
    ");
    driver.gpus[2].company.listed = None;
    assert_eq!(chosen(&driver, "auto"), Ok(vec![3]), "of the other one it is not known who is on it");
}

#[test]
fn mig_devices_are_used_as_found_if_all_of_a_card_are_ours() {
    let mut driver = machine(2);
    driver.gpus[1].mig_devices = vec!["MIG-a1".into(), "MIG-b2".into()];
    let of = |text: &'static str| {
        let value = move |name: &str| (name == CUDA).then(|| text.to_string());
        Allocation::of(&value, &driver).unwrap().unwrap()
    };
    let all = of("MIG-a1,MIG-b2");
    assert!(all.is_of_instances(&driver.gpus[1]) && !all.is_of_instances(&driver.gpus[0]));
    assert_eq!(all.choose(&GpuSelector::Auto, &driver).unwrap().len(), 1);
    let one = of("MIG-b2").choose(&GpuSelector::Auto, &driver).unwrap_err().to_string();
    assert!(one.contains("1 of the 2 MIG devices of GPU 1 are allocated"), "{one}");
    assert!(of("MIG-GPU-11-aa/1/0").is_of_instances(&driver.gpus[1]));
}

#[test]
fn a_card_that_does_not_answer_keeps_its_number() {
    let mut station = machine(4);
    station.gpus.remove(0);
    station.silent.push(SilentGpu { index: 0, why: "lost".into(), hint: None });
    assert_eq!(on(&station, &[("SLURM_JOB_GPUS", "1")]), Ok(Some(vec![1])));
    assert_eq!(on(&station, &[(CUDA, "2")]), Ok(Some(vec![2])));
    assert!(on(&station, &[("SLURM_JOB_GPUS", "0")]).is_err(), "it is nobody else's");
}
