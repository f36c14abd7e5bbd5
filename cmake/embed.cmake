# Writes OUTPUT, a C++ source with the bytes of INPUT as `headway::NAME` and their number as `headway::NAMESize`:
#   cmake -DINPUT=... -DOUTPUT=... -DNAME=... -P embed.cmake
file(READ "${INPUT}" bytes HEX)
string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
# Compilers and editors choke on one line of a megabyte.
string(REGEX REPLACE "(0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,)" "\\1\n"
       bytes "${bytes}")
file(WRITE "${OUTPUT}.tmp" "#include <cstddef>

namespace headway::show {
extern const unsigned char ${NAME}[];
extern const std::size_t ${NAME}Size;
const unsigned char ${NAME}[] = {
${bytes}
};
const std::size_t ${NAME}Size = sizeof(${NAME});
}  // namespace headway::show
")
file(RENAME "${OUTPUT}.tmp" "${OUTPUT}")
