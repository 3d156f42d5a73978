//! The device that an experiment requests: the CPU, a GPU model that is planned for, or GPUs of this machine.

use collo_gpus::mig::Cards;
use collo_plan::experiment::{DeviceChoice, DeviceRequest, Experiment};
use collo_plan::facts::{DeviceFacts, Driver, Gpu};
use collo_text::{Diagnostic, Diagnostics};

use crate::allocation::Allocation;
use crate::lease::journal;
use crate::nvml::NoDriver;
use crate::select_gpu::GpuSelector;
use crate::{cpu, gpu, has_gpu, mps};

/// The facts of GPUs of this machine, all alike; or of a model, without a driver.
pub fn on_gpus(gpus: Vec<Gpu>, driver: Option<&Driver>) -> DeviceFacts {
    DeviceFacts::on_gpus(gpus, driver, cpu::facts(), mps::program().is_some())
}

/// The facts of the device that this experiment requests. Without `--gpu` it is measured on the GPUs of the campaign that goes on,
/// `own_gpus`, if they are here and may be used; then on that of the machine's `collo.toml`.
pub fn requested(
    experiment: &Experiment,
    asked: &DeviceRequest,
    cards: &Cards,
    own_gpus: impl FnOnce() -> Option<String>,
) -> Result<DeviceFacts, Diagnostics> {
    let of_host = || experiment.layers.host().gpu.clone().filter(|_| experiment.device != DeviceChoice::Cpu);
    match (experiment.device, &asked.gpu.clone().or_else(of_host)) {
        (DeviceChoice::Cpu, Some(_)) => {
            let what = format!("`{}` has `device = \"cpu\"`, so `--gpu` has no meaning for it", experiment.name);
            Err(Diagnostic::new(what).hint("`device = \"auto\"` in the experiment accepts either").into())
        }
        (DeviceChoice::Cpu, None) => Ok(with_its_cores(experiment, cpu::facts())?),
        (DeviceChoice::Auto, None) if !has_gpu() => Ok(with_its_cores(experiment, cpu::facts())?),
        (_, Some(model)) if asked.planning && cards.find(model).is_ok() => {
            let gpu = Gpu::planned(cards.find(model)?);
            let count = experiment.trace.as_ref().and_then(|trace| trace.cards).unwrap_or(1) as usize;
            Ok(with_its_cores(experiment, on_gpus(vec![gpu; count], None))?)
        }
        (_, Some(model)) if cards.find(model).is_ok() => {
            Err(Diagnostic::new(format!("`{model}` is a GPU model, and runs need a GPU of this machine"))
                .hint(format!("`collo plan {} --gpu {model}` plans for one; GPUs here: `collo doctor`", experiment.name))
                .into())
        }
        (_, Some(text)) if GpuSelector::parse(text).is_model() => match cards.find(text) {
            Err(unknown) => Err(unknown),
            Ok(model) => Err(Diagnostic::new(format!("`{}` is a GPU model", model.name)).into()),
        },
        (_, choice) => {
            let driver = gpu::ask(cards).map_err(|e| no_gpu(experiment, &e, choice.as_deref(), cards))?;
            let several =
                experiment.trace.as_ref().and_then(|trace| trace.cards).map(|cards| GpuSelector::Several(cards as usize));
            let choice = choice.as_deref().map(GpuSelector::parse).or(several).unwrap_or_default();
            let allocation = Allocation::of_environment(&driver)?;
            let choose = |choice: &GpuSelector| match &allocation {
                Some(allocation) => allocation.choose(choice, &driver),
                None => choice.of(&driver),
            };
            let own = if asked.gpu.is_none() { own_gpus() } else { None };
            let mut chosen = match own.and_then(|own| choose(&GpuSelector::parse(&own)).ok()) {
                Some(own) => own,
                None => choose(&choice)?,
            };
            together(experiment, &mut chosen)?;
            let mut facts = on_gpus(chosen, Some(&driver));
            let own_instances = allocation.is_some_and(|a| facts.gpu().is_some_and(|gpu| a.is_of_instances(gpu)));
            facts.as_found = asked.as_found || own_instances;
            Ok(with_its_cores(experiment, facts)?)
        }
    }
}

/// Several GPUs of one campaign must be found alike: the order of its blocks and what may be changed are the same on each. In the
/// order of their indices, so that `0,1` and `1,0` are the same campaign. What a killed collo left changed was not found: it is
/// restored before runs are planned, and this is checked again.
fn together(experiment: &Experiment, chosen: &mut [Gpu]) -> Result<(), Diagnostic> {
    chosen.sort_by_key(|gpu| gpu.at.as_ref().map(|at| at.index));
    let [first, others @ ..] = &*chosen else { return Ok(()) };
    if experiment.search && !others.is_empty() {
        let what = format!("`{}` is a search, which runs on one GPU: each round depends on the one before", experiment.name);
        return Err(Diagnostic::new(what).hint(format!("`--gpu {}`", first.at.as_ref().map_or(0, |at| at.index))));
    }
    let text = |gpu: &Gpu| gpu.partition.as_ref().map_or("unknown".into(), ToString::to_string);
    let differs = |gpu: &&Gpu| match (&first.partition, &gpu.partition) {
        (Some(one), Some(other)) => !one.is_as(other),
        (one, other) => one.is_some() != other.is_some(),
    };
    let is_left = |gpu: &Gpu| gpu.at.as_ref().is_some_and(|at| journal::is_there(&at.uuid).unwrap_or(true));
    match others.iter().find(differs) {
        None => Ok(()),
        Some(_) if chosen.iter().any(is_left) => Ok(()),
        Some(other) => {
            let what = format!("{} is found with {}, but {} with {}", first.label(), text(first), other.label(), text(other));
            Err(Diagnostic::new(what)
                .note("a campaign on several GPUs measures the same on each")
                .hint("partition them alike with `collo mig apply`, or run one campaign for each and `collo compare` them")
                .of_machine())
        }
    }
}

fn no_gpu(experiment: &Experiment, tried: &NoDriver, choice: Option<&str>, cards: &Cards) -> Diagnostic {
    let name = &experiment.name;
    let near = choice.and_then(|c| collo_text::nearest(c, cards.iter().map(|card| card.name.as_str())));
    let hint = match near {
        _ if tried.hint().is_some() => tried.hint().unwrap_or_default().to_string(),
        Some(near) => format!("did you mean `--gpu {near}`? All models: `collo list gpus`"),
        None => {
            format!("simulate it with `collo --simulate a100-40gb run {name}`, or measure the CPU with `collo run quickstart`")
        }
    };
    Diagnostic::new(format!("`{name}` needs an NVIDIA GPU: {tried}")).hint(hint).of_machine()
}

fn with_its_cores(experiment: &Experiment, facts: DeviceFacts) -> Result<DeviceFacts, Diagnostic> {
    if let Some(missing) = experiment.cores.named().iter().find(|core| !facts.cores.contains(core)) {
        let have: Vec<String> = facts.cores.iter().map(u32::to_string).collect();
        return Err(Diagnostic::new(format!("`{}` asks for core {missing}, which collo may not use here", experiment.name))
            .hint(format!("cores here are {}; `cores = \"shared\"` uses them all", have.join(",")))
            .of_machine());
    }
    Ok(facts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{experiment, read};

    const AXES: &str = "[axes]\nworkload = \"tiny\"\n";

    #[test]
    fn a_machine_without_a_gpu_says_so_and_tells_the_ways_out() {
        if has_gpu() {
            return crate::skip::skip("a machine without a GPU", "this machine has a GPU");
        }
        let facts = |e: &Experiment, gpu: Option<&str>| {
            requested(e, &DeviceRequest { gpu: gpu.map(str::to_string), ..DeviceRequest::default() }, &Cards::default(), || None)
        };
        let e = read(&format!("name = \"mine\"\ndevice = \"gpu\"\n{AXES}")).expect("right");
        let mistakes = facts(&e, None).expect_err("refused");
        assert_eq!(mistakes.class().code(), 3);
        insta::assert_snapshot!(mistakes, @r#"
        error: `mine` needs an NVIDIA GPU: no `libnvidia-ml.so.1`, and `COLLO_NVML` is not set
        hint: simulate it with `collo --simulate a100-40gb run mine`, or measure the CPU with `collo run quickstart`
        "#);
        let cpu = experiment(AXES);
        assert!(facts(&cpu, None).is_ok());
        assert!(facts(&cpu, Some("0")).expect_err("no meaning").to_string().contains("`--gpu` has no meaning for it"));
        let auto = read(&format!("name = \"mine\"\n{AXES}")).expect("right");
        assert!(facts(&auto, None).is_ok(), "`auto` is the CPU where there is no GPU");
        let odd = experiment(&format!("cores = \"65000\"\n{AXES}"));
        let said = facts(&odd, None).expect_err("no such core").to_string();
        assert!(said.starts_with("error: `mine` asks for core 65000"), "{said}");
    }
}
