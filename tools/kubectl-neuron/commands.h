#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "tools/kubectl-neuron/options.h"
#include "tools/kubectl-neuron/top.h"

// The commands, one file each. add_X declares the options of a command and is called once; run_X is called when the
// command was given, and returns the exit status (options.h). main.cpp has the table.
namespace neuron::fleet {

// nodes: a line per node.
struct NodesOptions {
  std::vector<std::string> nodes;  // only these; empty: all
  std::string output = "table";
};
void add_nodes(CLI::App& command, NodesOptions& own);
[[nodiscard]] int run_nodes(const Options& options, const NodesOptions& own);

// pods: a line per pod that asks for hardware.
struct PodsOptions {
  std::string output = "table";
  bool all_namespaces = false;
};
void add_pods(CLI::App& command, PodsOptions& own);
[[nodiscard]] int run_pods(const Options& options, const PodsOptions& own);

// why: why a pod waits, was refused or is badly placed.
struct WhyOptions {
  std::string pod;  // "name" or "namespace/name"
  std::string output = "text";
};
void add_why(CLI::App& command, WhyOptions& own);
[[nodiscard]] int run_why(const Options& options, const WhyOptions& own);

// plan: how many pods of a manifest fit, and where.
struct PlanOptions {
  std::string file;  // "-": standard input
  int replicas = 0;  // 0: those of the manifest
  std::string output = "text";
};
void add_plan(CLI::App& command, PlanOptions& own);
[[nodiscard]] int run_plan(const Options& options, const PlanOptions& own);

// dump: all documents in one archive.
struct DumpOptions {
  std::string file;
  bool anonymise = false;
};
void add_dump(CLI::App& command, DumpOptions& own);
[[nodiscard]] int run_dump(const Options& options, const DumpOptions& own);

// map: a picture of the fleet.
struct MapOptions {
  std::string format;
  std::string file;
  std::vector<std::string> nodes;  // only these; empty: all
  bool force = false;              // replaces an existing file
};
void add_map(CLI::App& command, MapOptions& own);
[[nodiscard]] int run_map(const Options& options, const MapOptions& own);

// top: utilization, memory and traffic by node, namespace and pod.
struct TopOptions {
  std::string by = "node";
  std::string sort = "name";
  std::string filter;
  std::string interval = "5";
  bool once = false;
  bool json = false;
};
void add_top(CLI::App& command, TopOptions& own);
[[nodiscard]] int run_top(const Options& options, const TopOptions& own);

// -o table|wide|json|csv.
void add_output(CLI::App& command, std::string& output);
[[nodiscard]] Output output_of(const std::string& text);

// The whole text of a command. JSON is ASCII alone: names may have characters that change how a terminal shows the
// rest. Pure.
[[nodiscard]] std::string nodes_listing(const Fleet& fleet, Output output);
// `only_namespace`: "" = all.
[[nodiscard]] std::string pods_listing(const Fleet& fleet, const Usages& usages, Output output,
                                       const std::string& only_namespace);

}  // namespace neuron::fleet
