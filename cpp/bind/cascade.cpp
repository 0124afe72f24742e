#include "elastic_rank/cascade.hpp"

#include <pybind11/stl.h>

#include <tuple>

#include "errors.hpp"
#include "registrations.hpp"
#include "scorer.hpp"

namespace py = pybind11;

namespace elastic_rank::bind {
namespace {

using StageTuple = std::tuple<std::string, std::shared_ptr<Scorer>, std::int64_t, std::int64_t>;

std::unique_ptr<Cascade> make_cascade(std::vector<StageTuple> stages, int threads) {
  std::vector<Stage> core;
  for (auto& [name, scorer, base, max] : stages) core.push_back({name, scorer, base, max});
  return std::make_unique<Cascade>(std::move(core), threads);
}

/// (stages, B) int64, or an empty span for None.
std::span<const std::int64_t> depths_view(const py::object& depths, const Cascade& cascade,
                                          std::int64_t n_requests) {
  if (depths.is_none()) return {};
  const auto n_stages = static_cast<py::ssize_t>(cascade.stages().size());
  if (!py::isinstance<py::array_t<std::int64_t, py::array::c_style>>(depths)) {
    raise_type("depths", py::str(py::type::of(depths)).cast<std::string>(),
               "a C-contiguous int64 array (stages, requests)");
  }
  const auto array = py::reinterpret_borrow<py::array>(depths);
  if (array.ndim() != 2 || array.shape(0) != n_stages || array.shape(1) != n_requests) {
    raise_value("depths", "shape " + py::str(array.attr("shape")).cast<std::string>(),
                "(" + std::to_string(n_stages) + ", " + std::to_string(n_requests) + ")");
  }
  return {static_cast<const std::int64_t*>(array.data()), static_cast<std::size_t>(array.size())};
}

py::tuple rank(const Cascade& cascade, const py::object& query, const py::object& candidates,
               const py::object& offsets, const py::object& depths) {
  const BatchView batch = batch_view(query, candidates, offsets, "candidates");
  check_ids(batch.ids, cascade.n_items(), "candidates");
  for (const Stage& stage : cascade.stages()) {
    if (!stage.scorer->accepts_query(batch.query.cols)) {
      raise_value("requests.query", "width " + std::to_string(batch.query.cols),
                  "a width that stage '" + stage.name + "' was built for");
    }
  }
  const RequestBatch requests{batch.query, batch.ids, batch.offsets};
  const py::ssize_t n = requests.size();
  const auto n_stages = static_cast<py::ssize_t>(cascade.stages().size());
  const std::span<const std::int64_t> asked = depths_view(depths, cascade, n);

  py::array_t<std::int32_t> evaluated({n_stages, n});
  py::array_t<std::int64_t> out_offsets(n + 1);
  py::array_t<std::uint8_t> reason(n);
  const auto count = static_cast<std::size_t>(n);
  const std::span<std::int32_t> evaluated_span(evaluated.mutable_data(),
                                               static_cast<std::size_t>(evaluated.size()));
  const std::span<std::int64_t> offsets_span(out_offsets.mutable_data(), count + 1);
  cascade.plan(requests, asked, evaluated_span, offsets_span,
               {reinterpret_cast<Reason*>(reason.mutable_data()), count});

  const std::int64_t total = offsets_span[count];
  py::array_t<std::int64_t> ids(total);
  py::array_t<float> scores(total);
  const auto n_out = static_cast<std::size_t>(total);
  const RankedOutput output{
      {ids.mutable_data(), n_out}, {scores.mutable_data(), n_out}, offsets_span};
  RankFailure failure;
  Status status;
  {
    const py::gil_scoped_release release;  // scorers that need the interpreter take it back
    status = cascade.rank(requests, evaluated_span, output, failure);
  }
  if (status == Status::scorer_failed) {
    raise_scorer_error(cascade.stages()[static_cast<std::size_t>(failure.stage)].name, failure);
  }
  check(status, "rank");
  return py::make_tuple(ids, scores, out_offsets, evaluated, reason);
}

py::list counts(const Cascade& cascade) {
  py::list out;
  for (std::int64_t s = 0; s < static_cast<std::int64_t>(cascade.stages().size()); ++s) {
    const Cascade::StageCounts counts = cascade.counts(s);
    out.append(py::make_tuple(counts.scored, counts.nan));
  }
  return out;
}

}  // namespace

void register_cascade(py::module_& module) {
  py::class_<Cascade>(module, "Cascade", "Stages of rising cost over shrinking candidate lists.")
      .def(py::init(&make_cascade), py::arg("stages"), py::arg("threads") = 1)
      .def_property_readonly("n_items", &Cascade::n_items)
      .def("rank", &rank, py::arg("query"), py::arg("candidates"), py::arg("offsets"),
           py::arg("depths") = py::none())
      .def("counts", &counts);
}

}  // namespace elastic_rank::bind
