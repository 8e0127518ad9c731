#include "tools/neuron-sim/kubelet/shell.h"

#include <gtest/gtest.h>

#include <sstream>

namespace neuron::sim {
namespace {

ContainerGrant grant() {
  ContainerGrant out;
  out.name = "main";
  out.ids["aws.amazon.com/neuron"] = {"0", "1", "2", "3"};
  out.ids["vpc.amazonaws.com/efa"] = {"rdmap16s25", "rdmap16s26"};
  out.env["NEURON_RT_VISIBLE_CORES"] = "0-7";
  for (int i = 0; i < 4; ++i) {
    const std::string node = "/dev/neuron" + std::to_string(i);
    out.devices.push_back({node, node, "rw"});
  }
  return out;
}

TEST(ReportTest, AnAdmittedPod) {
  EXPECT_EQ(pod_text({"train"}, PodResult{"uid", {grant()}}),
            "pod train: admitted\n"
            "  main\n"
            "    aws.amazon.com/neuron  4 units: 0-3\n"
            "    vpc.amazonaws.com/efa  2 units: rdmap16s25 rdmap16s26\n"
            "    env                    NEURON_RT_VISIBLE_CORES=0-7\n"
            "    devices (rw)           /dev/neuron0 /dev/neuron1 /dev/neuron2 /dev/neuron3\n");
}

TEST(ReportTest, NotesStandBesideTheAnswer) {
  PodNotes notes;
  notes.containers.push_back({"neuron=4 efa=2",
                              {{"aws.amazon.com/neuron", "aligned group of 4, 8 hops, leaves 3 groups of 4 whole"},
                               {"vpc.amazonaws.com/efa", "nearest to devices 0-3"}}});
  notes.left = "neuron 12 of 16, neuroncore 24 of 32, efa 6 of 8, example.com/other 1000000 of 1000000";
  EXPECT_EQ(pod_text({"train"}, PodResult{"uid", {grant()}}, notes),
            "pod train: admitted\n"
            "  main, asked neuron=4 efa=2\n"
            "    aws.amazon.com/neuron  4 units: 0-3\n"
            "      because              aligned group of 4, 8 hops, leaves 3 groups of 4\n"
            "                           whole\n"
            "    vpc.amazonaws.com/efa  2 units: rdmap16s25 rdmap16s26\n"
            "      because              nearest to devices 0-3\n"
            "    env                    NEURON_RT_VISIBLE_CORES=0-7\n"
            "    devices (rw)           /dev/neuron0 /dev/neuron1 /dev/neuron2 /dev/neuron3\n"
            "  left: neuron 12 of 16, neuroncore 24 of 32, efa 6 of 8, example.com/other\n"
            "        1000000 of 1000000\n");
  notes.left = "neuron 0 of 16";
  EXPECT_EQ(pod_text({"late"}, fail(ErrorCode::failed_precondition, "none is left"), notes),
            "pod late: refused\n"
            "  none is left\n"
            "  left: neuron 0 of 16\n");
}

TEST(ReportTest, EverythingThatCanGoWrongIsShown) {
  ContainerGrant odd;
  odd.name = "main";
  odd.devices = {{"/dev/a", "/host/dev/a", "r"}};
  odd.cdi_names = {"aws.amazon.com/neuron=0"};
  odd.conflicts = {"env A: \"1\" stays, b wanted \"2\""};
  odd.unserved = {"example.com/x"};
  odd.start_error = "core 0 is busy";
  EXPECT_EQ(container_text(odd),
            "  main\n"
            "    example.com/x  never registered: admitted without it\n"
            "    devices (r)    /dev/a\n"
            "    from host      /host\n"
            "    CDI            aws.amazon.com/neuron=0\n"
            "    conflict       env A: \"1\" stays, b wanted \"2\"\n"
            "    not started    core 0 is busy\n");
}

TEST(ReportTest, ARefusedPodAndOneWithoutDevices) {
  PodSpec pod{"big"};
  pod.ns = "team";
  EXPECT_EQ(pod_text(pod, fail(ErrorCode::failed_precondition,
                               "Pod was rejected: Allocate failed due to requested number of devices unavailable for "
                               "aws.amazon.com/neuron. Requested: 16, Available: 12, which is unexpected")),
            "pod team/big: refused\n"
            "  Pod was rejected: Allocate failed due to requested number of devices\n"
            "  unavailable for aws.amazon.com/neuron. Requested: 16, Available: 12, which is\n"
            "  unexpected\n");
  ContainerGrant none;
  none.name = "log";
  EXPECT_EQ(container_text(none), "  log: no devices\n");
}

TEST(ReportTest, Resources) {
  ResourceView chips;
  chips.capacity = 16;
  chips.allocatable = 14;
  chips.in_use = 4;
  chips.connected = true;
  chips.unhealthy = {"3", "10"};
  ResourceView gone;
  gone.capacity = 8;
  EXPECT_EQ(resources_text({{"aws.amazon.com/neuron", chips}, {"vpc.amazonaws.com/efa", gone}}),
            "RESOURCE               CAPACITY  ALLOCATABLE  IN USE  UNHEALTHY\n"
            "aws.amazon.com/neuron        16           14       4  3,10\n"
            "vpc.amazonaws.com/efa         8            0       0  (plugin gone)\n");
  EXPECT_EQ(resources_text({}), "no resource was ever registered\n");
}

TEST(ReportTest, Pods) {
  PodView pod{"train", "default", "uid", {}};
  pod.containers.push_back(
      {"main",
       ContainerKind::app,
       {{"aws.amazon.com/neuron", "1", 0}, {"aws.amazon.com/neuron", "1", 1}, {"aws.amazon.com/neuron", "0", 0}}});
  pod.containers.push_back({"log", ContainerKind::app, {}});
  EXPECT_EQ(pods_text({pod}),
            "POD    CONTAINER  RESOURCE               DEVICES\n"
            "train  main       aws.amazon.com/neuron  0-1\n"
            "train  log        -                      -\n");
  EXPECT_EQ(pods_text({}), "no pods\n");
}

TEST(ReportTest, ManyNodesStayWithinTheTerminal) {
  ContainerGrant wide = grant();
  for (int i = 0; i < 32; ++i) wide.devices.push_back({"/dev/infiniband/uverbs" + std::to_string(i), "/x", "rw"});
  for (int i = 0; i < 32; ++i) wide.ids["vpc.amazonaws.com/efa"].push_back("rdmap" + std::to_string(100 + i) + "s25");
  std::istringstream text(container_text(wide));
  for (std::string line; std::getline(text, line);) EXPECT_LE(line.size(), 80U) << line;
}

TEST(ReportTest, IdsAreRangesOnlyWhenAllAreNumbers) {
  EXPECT_EQ(ids_text({"10", "9", "8", "0"}), "0,8-10");
  EXPECT_EQ(ids_text({"1", "rdmap2"}), "1 rdmap2");
  EXPECT_EQ(ids_text({"01", "2"}), "01 2");
  EXPECT_EQ(ids_text({}), "");
}

}  // namespace
}  // namespace neuron::sim
