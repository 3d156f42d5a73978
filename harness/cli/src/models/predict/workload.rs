//! What a workload will need of a GPU's memory.
//!
//! In: a workload with its settings. Out: its step in numbers, its memory by part with an upper bound, and what fits a GPU. It is a
//! prediction, and says by what; nothing is measured.

use collo_device::gpu;
use std::sync::Arc;

use collo_figures::document::{Align, Table};
use collo_measure::events::Event;
use collo_plan::cell::Member;
use collo_plan::facts::Gpu;
use collo_plan::predictors;
use collo_plan::project::Project;
use collo_plan::workload::Workloads;
use collo_predict::utilisation::{SevenFeatures, UtilisationPredictor};
use collo_predict::{Basis, Description, Peer, Prediction, Target, Width, WidthFrom};
use collo_prepare::consent::DescribeConsent;
use collo_prepare::describe::{Describer, basis_of};
use collo_quantity::number;
use collo_text::units::{gib, mib};
use collo_text::{Diagnostic, Diagnostics};
use serde_json::{Value as Json, json};

use super::alone::Alone;
use super::serving::{Candidates, Serving};
use crate::answer::{Answer, Answered};
use crate::args::{self, PredictFormat};
use crate::context::Context;
use crate::measuring::steps;
use crate::{output, progress};
use collo_laboratory::table::value_of;

/// The memory of a GPU.
struct Room {
    name: String,
    /// The driver's name for it.
    gpu: String,
    architecture: Option<String>,
    bytes: u64,
    simulated: bool,
}

/// The result, for people and for programs.
struct WorkloadPrediction<'a> {
    member: &'a Member,
    description: &'a Description,
    by: Serving,
    prediction: Prediction,
    batch: u64,
    basis: Basis,
    room: Option<Room>,
    /// How busy it keeps the GPU; or why nothing is said of it.
    alone: Option<Result<Alone, Diagnostic>>,
    /// Estimators of the literature, if asked for.
    peers: Vec<(Peer, Option<f64>)>,
}

pub fn run(context: &Context<'_>, a: &args::Predict, project: &Project, workloads: &Workloads) -> Answered {
    let workload = workloads.find(a.target())?;
    if a.format == Some(PredictFormat::Csv) {
        return Err(Diagnostic::new("`--format csv` has a row for each cell of an experiment").hint("`--json`").into());
    }
    let mut given = Vec::new();
    for text in &a.settings {
        let (name, value) = text
            .split_once('=')
            .ok_or_else(|| Diagnostic::new(format!("invalid setting `{text}`")).hint("as in `--set model=resnet18`"))?;
        given.push((name, value_of(workload, name, value)));
    }
    if let Some(batch) = a.batch {
        if given.iter().any(|(name, _)| *name == "batch_size") {
            return Err(Diagnostic::new("the batch size is given twice: `--batch` and `--set batch_size`").into());
        }
        given.push(("batch_size", batch.into()));
    }
    let member = Arc::new(Member::new(workload, given)?);
    let room = room(project, a.gpu.as_deref())?;
    let target = room.as_ref().map(Room::target);
    let folder = context.folder()?;
    // Where one of utilisation is named, memory is predicted by the nearest.
    let named = a.predictor.as_deref();
    let of_utilisation: Option<UtilisationPredictor> = named.and_then(|name| predictors::find_of(project, &folder, name).ok());
    let candidates = Candidates::of(project, &folder, named.filter(|_| of_utilisation.is_none()), target)?;
    // Before anything is traced.
    let any = candidates.with_torch(None)?;
    any.predictor.may_serve_gpu(room.as_ref().is_some_and(|room| room.simulated)).map_err(|wrong| {
        let hint = "for a GPU that this machine does not have: `--gpu a100-40gb`";
        if a.gpu.is_none() { wrong.only_hint(hint) } else { wrong }
    })?;
    let consent =
        DescribeConsent::of(project, a.describe || a.fresh).ok_or_else(|| steps::undescribed(format!("`{}`", a.target())))?;
    let mut display = progress::display(context.arguments.quiet);
    let workloads = std::slice::from_ref(workload);
    let describer = Describer::new(project, workloads, false, a.python.as_deref(), a.fresh, consent, &mut |progress| {
        display.show(Event::Python(progress));
    });
    display.end();
    let describer = describer?;
    let description = describer.member(&member)?;
    let basis = basis_of(&member);
    let batch = u64::from(member.batch_size().ok_or_else(|| {
        Diagnostic::new(format!("workload `{}` has no batch size", a.target()))
            .hint("`--batch N` is a setting `batch_size` of a workload")
    })?);
    let by = candidates.with_torch(describer.version_of("torch"))?;
    let alone = room.as_ref().map(|room| {
        let target = Target { torch: describer.version_of("torch"), ..room.target() };
        Alone::of(project, &target, &description, batch, of_utilisation.as_ref())
    });
    let prediction = WorkloadPrediction {
        member: &member,
        alone: alone.transpose()?,
        description: &description,
        prediction: by.predictor.predict(&description, batch, basis)?,
        by,
        batch,
        basis,
        room,
        peers: match a.peers {
            true => Peer::ALL.map(|peer| (peer, peer.estimate_bytes(&description, batch))).into(),
            false => Vec::new(),
        },
    };
    if context.arguments.json || a.format == Some(PredictFormat::Json) {
        return Ok(Answer::json(prediction.value()));
    }
    let mut answer = Answer::default();
    answer.lines(prediction.text());
    prediction.notes().into_iter().for_each(|note| answer.note(note));
    Ok(answer)
}

/// The GPU to predict for: of the models, else this machine's first that computes; `None` without one.
fn room(project: &Project, asked: Option<&str>) -> Result<Option<Room>, Diagnostics> {
    let cards = project.cards();
    if let Some(name) = asked {
        let card = cards.find(name)?;
        let gpu = Gpu::planned(card);
        let bytes = gpu.memory_bytes.ok_or_else(|| {
            Diagnostic::new(format!("the memory of `{name}` is not known"))
                .hint(format!("`memory_mib` or `memory_gb` in mig-profiles/{name}.toml"))
        })?;
        return Ok(Some(Room { name: name.into(), gpu: gpu.name, architecture: gpu.architecture, bytes, simulated: false }));
    }
    let gpus = gpu::ask(&cards).map(|driver| driver.gpus).unwrap_or_default();
    let gpu = gpus.into_iter().find(|gpu| gpu.computes());
    Ok(gpu.and_then(|gpu| {
        Some(Room {
            bytes: gpu.memory_bytes?,
            simulated: gpu.simulated,
            name: gpu.label(),
            architecture: gpu.architecture.clone(),
            gpu: gpu.name,
        })
    }))
}

impl Room {
    /// Whatever the workload trains with.
    fn target(&self) -> Target {
        Target {
            gpu: Some(self.gpu.clone()),
            architecture: self.architecture.clone(),
            simulated: self.simulated,
            ..Target::default()
        }
    }
}

impl WorkloadPrediction<'_> {
    /// The largest batch size whose upper bound is within the GPU.
    fn largest_batch(&self) -> Option<u64> {
        self.by.predictor.largest_batch(self.description, self.basis, self.room.as_ref()?.bytes as f64)
    }

    /// What happens on a GPU that has less than the estimate: the allocator gives back what it keeps before a step fails.
    fn within(&self, room: &Room) -> Option<String> {
        if self.prediction.footprint.bytes <= room.bytes as f64 {
            return None;
        }
        let coefficients = self.by.predictor.law.coefficients;
        Some(match coefficients.footprint_within(self.description, self.batch, self.basis, room.bytes) {
            Ok(_) => "fits by the estimate only where cached memory is given back again and again, which costs time".into(),
            Err(why) => Diagnostic::from(why).what().to_string(),
        })
    }

    /// How many members' upper bounds are within the GPU together.
    fn largest_degree(&self) -> Option<u64> {
        Some((self.room.as_ref()?.bytes as f64 / self.prediction.upper_bytes) as u64)
    }

    /// Parts that are something, the largest first; the last three of every footprint stay at the end.
    fn parts(&self) -> Vec<(&str, f64)> {
        let all = &self.prediction.footprint.parts;
        let (kinds, further) = all.split_at(all.len().saturating_sub(3));
        let mut parts: Vec<(&str, f64)> = kinds.iter().filter(|p| p.bytes > 0.0).map(|p| (p.kind.as_str(), p.bytes)).collect();
        parts.sort_by(|a, b| b.1.total_cmp(&a.1));
        parts.extend(further.iter().map(|p| (p.kind.as_str(), p.bytes)));
        parts
    }

    fn text(&self) -> String {
        let (d, p) = (self.description, &self.prediction);
        let mut lines = vec![format!("{} at batch size {}: predicted, not measured\n", self.member.workload().name, self.batch)];
        let mut add = |what: &str, text: String| lines.push(format!("  {what:<13} {text}"));
        add("parameters", format!("{}, {} of weights", grouped(d.parameters), mib(d.parameter_bytes as f64)));
        add(
            "compute",
            format!("{} forward per item, {} kernels per step", flops(d.forward_flops_per_item), grouped(d.kernels_per_step)),
        );
        add("traced", format!("in {} with {}, by torch {}", d.precision, d.optimizer, d.torch));
        lines.push("\n  memory at the peak".into());
        let mut table = Table::new(&[("", Align::Left), ("", Align::Right), ("", Align::Left)], 3);
        for (kind, bytes) in self.parts() {
            table.values([Some(format!("    {kind}")), Some(mib(bytes)), Some(meaning(kind).to_string())]);
        }
        let rendered = table.render(output::width());
        lines.extend(rendered.lines().map(|line| line.trim_end().to_string()));
        let mut add = |what: &str, text: String| lines.push(format!("  {what:<13} {text}"));
        add("estimate", mib(p.footprint.bytes));
        add("upper bound", format!("{}: {}", mib(p.upper_bytes), promise(&self.by.predictor.law.width)));
        if p.footprint.training_bytes < 0.99 * p.footprint.bytes {
            add("", format!("{} once the cache of the warm-up was given back", mib(p.footprint.training_bytes)));
        }
        if let Some(room) = &self.room {
            lines.push(format!("\n  on {}, {}", room.name, gib(room.bytes)));
            let mut add = |what: &str, text: String| lines.push(format!("  {what:<13} {text}"));
            if let Some(text) = self.within(room) {
                add("one alone", text);
            }
            add("largest batch", self.largest_batch().map_or("not even 1 fits".into(), |n| format!("{n} alone")));
            add(
                "largest degree",
                match self.largest_degree().unwrap_or_default() {
                    0 => format!("0: at batch size {} not even one fits", self.batch),
                    n => format!("{n} under naive sharing at this batch size, all upper bounds together"),
                },
            );
        }
        if let Some(Ok(alone)) = &self.alone {
            lines.push("\n  alone on it".into());
            lines.extend(alone.table().render(output::width()).lines().map(|line| line.trim_end().to_string()));
        }
        if !self.peers.is_empty() {
            let seven = SevenFeatures::of(d, self.batch);
            lines.push("\n  features of HotCloud'20".into());
            let mut add = |what: &str, text: String| lines.push(format!("  {what:<13} {text}"));
            let SevenFeatures { convolutions, linear, activations, other, model_mb, gflops, .. } = seven;
            add(
                "layers",
                format!("{convolutions} convolutions, {linear} linear, {activations} activation functions, {other} other"),
            );
            add("model", format!("{model_mb:.2} MB, {gflops:.3} GFLOP forward for the batch of {}", self.batch));
            let mut table = Table::new(&[("  estimators of the literature", Align::Left), ("", Align::Right)], 2);
            for (peer, bytes) in &self.peers {
                table.values([Some(format!("    {peer}")), bytes.map(mib)]);
            }
            lines.push(format!("\n{}", table.render(output::width()).trim_end()));
        }
        lines.join("\n")
    }

    /// Whose prediction it is, and what it leaves out.
    fn notes(&self) -> Vec<String> {
        let p = &self.by.predictor;
        let on = p.conditions.gpu.as_ref().map(|gpu| format!(" on {gpu}")).unwrap_or_default();
        let mut notes =
            vec![format!("predicted by {}, fitted on {} {} measurements{on}", p.name, p.law.left_out.rows, p.mark.as_str())];
        if let Some(because) = self.by.because.filter(|_| self.by.widened > 1.0) {
            let times = number::factor(self.by.widened);
            notes.push(format!("its intervals are {times} times as wide, as logarithms: it was {because}"));
        }
        for reason in &self.prediction.footprint.approximate {
            notes.push(format!("approximate: {reason}"));
        }
        let tunes = self.member.settings().get("tune").and_then(Json::as_bool) == Some(true);
        if tunes && self.description.features.convolutions > 0 {
            notes.push(
                "with `tune = true` cuDNN's search may need more for a moment in the warm-up: no prediction has that".into(),
            );
        }
        match &self.alone {
            Some(Ok(alone)) => notes.extend(alone.notes()),
            Some(Err(why)) => notes.push(format!("nothing is said of utilisation: {}", why.what())),
            None => {}
        }
        if self.room.is_none() {
            notes.push("what fits is said for a GPU: `--gpu a100-40gb`".into());
        }
        notes
    }

    fn value(&self) -> Json {
        let (d, p) = (self.description, &self.prediction);
        let parts: Vec<Json> = self.parts().iter().map(|(kind, bytes)| json!({"kind": kind, "bytes": bytes})).collect();
        let room = self.room.as_ref().map(|room| {
            json!({"gpu": room.name, "memory_bytes": room.bytes, "largest_batch_size": self.largest_batch(),
                "largest_degree_naive": self.largest_degree()})
        });
        let peers: Vec<Json> =
            self.peers.iter().map(|(peer, bytes)| json!({"estimator": peer.to_string(), "bytes": bytes})).collect();
        let seven = SevenFeatures::of(d, self.batch);
        let features = json!({"convolutions": seven.convolutions, "linear": seven.linear, "activations": seven.activations,
            "other": seven.other, "model_mb": seven.model_mb, "gflops": seven.gflops, "batch_size": seven.batch_size});
        let alone = self.alone.as_ref().map(|said| match said {
            Ok(alone) => alone.value(),
            Err(why) => json!({"absent": why.what()}),
        });
        json!({"schema": 1, "predicted": true, "workload": self.member.workload().name, "batch_size": self.batch,
            "settings": self.member.settings(), "predictor": p.predictor, "mark": self.by.predictor.mark.as_str(),
            "widened": self.by.widened,
            "parameters": d.parameters, "flops_per_item": d.forward_flops_per_item, "kernels_per_step": d.kernels_per_step,
            "precision": d.precision, "optimizer": d.optimizer, "torch": d.torch, "memory_bytes": p.footprint.bytes,
            "upper_bytes": p.upper_bytes, "low_bytes": p.low_bytes, "high_bytes": p.high_bytes,
            "warm_up_bytes": p.footprint.warm_up_bytes, "training_bytes": p.footprint.training_bytes, "parts": parts,
            "approximate": p.footprint.approximate, "fits": room, "peers": peers, "features": features, "alone": alone})
    }
}

/// What a part is, for who meets the word here first.
fn meaning(kind: &str) -> &'static str {
    match kind {
        "saved" => "activations kept for the backward pass",
        "temporary" => "within single operations",
        "optimizer" => "the optimiser's moments",
        "rounding" => "held by the allocator, in no tensor",
        "workspace" => "cuDNN's",
        "context" => "of CUDA, outside the allocator",
        _ => "",
    }
}

/// What an upper bound promises.
fn promise(width: &Width) -> String {
    match width.from {
        WidthFrom::Families => "95 % of trainings stay below".into(),
        WidthFrom::Spread => "95 % of trainings stay below, by the spread of few architectures".into(),
        WidthFrom::Published => {
            format!("above 95 % of the {} trainings that it was made from, too few to promise a share of others", width.rows)
        }
    }
}

/// `25,557,032`
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn flops(number: f64) -> String {
    let units = [(1e12, "TFLOP"), (1e9, "GFLOP"), (1e6, "MFLOP"), (1e3, "kFLOP")];
    let (factor, unit) = units.into_iter().find(|(factor, _)| number >= *factor).unwrap_or((1.0, "FLOP"));
    format!("{:.2} {unit}", number / factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_and_flops_have_their_unit() {
        assert_eq!([0, 999, 1000, 25_557_032].map(grouped), ["0", "999", "1,000", "25,557,032"]);
        assert_eq!([0.0, 12.0, 4.1e9, 2.5e12].map(flops), ["0.00 FLOP", "12.00 FLOP", "4.10 GFLOP", "2.50 TFLOP"]);
    }
}
