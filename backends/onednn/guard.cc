/* SPDX-License-Identifier: Apache-2.0 */
/* The vendor's functions without their exceptions: the only C++ of Kiln, for which C has no catch.
 */
#include "backends/onednn/guard.h"

#include <cstddef>
#include <exception>
#include <type_traits>

/* graph/grow/reserve.h, which is C. */
extern "C" bool kiln_reserve_probe(std::size_t size);
extern "C" void kiln_reserve_note_failure(const char *what);

namespace
{

/* What one primitive takes at most as a rule: its code and the tables of the one that makes it. */
constexpr std::size_t room = 8 * 1024 * 1024;

template <typename Result>
Result
failed()
{
    kiln_reserve_note_failure("oneDNN");
    if constexpr (std::is_same_v<Result, dnnl_status_t>)
        return dnnl_out_of_memory;
    else
        return Result();
}

template <auto function, bool makes> struct Guarded;

template <typename Result, typename... Arguments, Result (*function)(Arguments...), bool makes>
struct Guarded<function, makes> {
    static Result call(Arguments... arguments)
    {
        if (makes && !kiln_reserve_probe(room))
            return failed<Result>();
        try {
            Result result = function(arguments...);
            if constexpr (std::is_same_v<Result, dnnl_status_t>) {
                if (result == dnnl_out_of_memory)
                    return failed<Result>();
            }
            return result;
            /* Not what unwinds a thread that is cancelled. */
        } catch (const std::exception &) {
            return failed<Result>();
        }
    }
};

} // namespace

const KilnOnednnGuarded kiln_onednn_guarded = {
#define X(name) Guarded<&dnnl_##name, true>::call,
    KILN_ONEDNN_MAKES(X)
#undef X
#define X(name) Guarded<&dnnl_##name, false>::call,
        KILN_ONEDNN_CALLS(X)
#undef X
};
