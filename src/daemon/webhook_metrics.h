// The metrics of the webhook. docs/reference/webhook.md has the tables.
#pragma once

#include "server/metrics.h"

namespace hopwise::daemon {

inline constexpr const char* kAdmissionReviews = "hopwise_admission_reviews_total";
inline constexpr const char* kAdmissionDuration = "hopwise_admission_duration_milliseconds";
inline constexpr const char* kCertificateExpiry = "hopwise_admission_certificate_expiry_seconds";
inline constexpr const char* kCertificateChanges = "hopwise_admission_certificate_changes_total";
inline constexpr const char* kCaBundlePatches = "hopwise_admission_ca_bundle_patches_total";

void DeclareWebhookMetrics(server::Metrics& metrics);

}  // namespace hopwise::daemon
