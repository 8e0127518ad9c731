#include "agent/metrics/exposition.h"

#include <gtest/gtest.h>

namespace neuron::metrics {
namespace {

TEST(Accept, OpenMetricsForWhoWantsItMost) {
  // Prometheus 2.42 and 3.x.
  EXPECT_EQ(format_for("application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
                       "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"),
            TextFormat::openmetrics);
  EXPECT_EQ(format_for("application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;"
                       "q=0.6,application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,"
                       "text/plain;version=0.0.4;q=0.3,*/*;q=0.2"),
            TextFormat::openmetrics);
  EXPECT_EQ(format_for("Application/OpenMetrics-Text ; Version=1.0.0 ; Q=0.7 , text/plain;q=0.5"),
            TextFormat::openmetrics);
  EXPECT_EQ(format_for("application/openmetrics-text"), TextFormat::openmetrics);
}

TEST(Accept, PrometheusTextForAllOthers) {
  for (const char* accept :
       {"", "*/*", "text/plain", "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8", "application/json",
        "text/plain;q=0.9,application/openmetrics-text;q=0.5", "application/openmetrics-text;version=2.0.0",
        "application/openmetrics-text;q=0", "application/openmetrics-text-not", ",,;;,=;q=;q=q"}) {
    EXPECT_EQ(format_for(accept), TextFormat::prometheus) << accept;
  }
}

TEST(Accept, AWeightThatIsNoneCountsAsNoneGiven) {
  EXPECT_EQ(format_for("application/openmetrics-text;q=much,text/plain;q=0.9"), TextFormat::openmetrics);
  EXPECT_EQ(format_for("application/openmetrics-text;q=0.5,text/plain;q=-7"), TextFormat::prometheus);
  EXPECT_EQ(format_for("application/openmetrics-text;q=nan,text/plain;q=0.9"), TextFormat::openmetrics);
}

}  // namespace
}  // namespace neuron::metrics
