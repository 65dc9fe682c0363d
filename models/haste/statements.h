#pragma once
#include <cutaway/models/reproduce/reproduce.h>

namespace cutaway::haste {

// The statements of section 8 of the method, for `cutaway reproduce haste`.
extern const reproduce::Study kStudy;

// Statement 5 and the quality part of 8, which train on synth-xmc: all layers and ablations of
// section 6 beside each other.
void quality_statements(reproduce::Run& run);
// Statements 7 and 8a.
void number_statements(reproduce::Run& run);

}  // namespace cutaway::haste
