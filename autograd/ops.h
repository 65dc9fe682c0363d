#pragma once
// All ops. One header a family.
