#include "tools/neuron-sim/load_jobs.h"

#include <array>

namespace neuron::sim {
namespace {

constexpr std::array<JobKind, 5> kKinds = {{
    {"/opt/venv/bin/python3 train_llama.py --tensor-parallel 8 --zero1", "train-llama-70b", 0.5, 0.72, 0.84, 0.08, 150,
     1.5, 0.7, 1.6, 6},
    {"/opt/venv/bin/python3 -m vllm.entrypoints.openai.api_server --model qwen3-8b", "serve-qwen3-8b", 0.13, 0.35, 0.65,
     0.25, 90, 55, 0, 1.1, 4},
    {"/opt/venv/bin/python3 embed.py --batch 64 --model e5-large", "", 0.07, 0.5, 0.8, 0.1, 45, 420, 0, 0.7, 1.5},
    {"/opt/venv/bin/python3 -m ipykernel_launcher -f kernel.json", "notebook", 0.07, 0.05, 0.25, 0.2, 60, 20, 0, 0.3,
     1},
    {"nccom-test -r 64 allr --minbytes 8 --maxbytes 8G", "", 0.25, 0.15, 0.3, 0.1, 30, 0, 0.9, 0.5, 0.3},
}};

}  // namespace

std::span<const JobKind> job_kinds() {
  return kKinds;
}

}  // namespace neuron::sim
