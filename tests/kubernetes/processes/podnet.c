/* LD_PRELOAD for frameworks that listen on all addresses: a socket gets the address of its pod,
   POD_IP, instead. Pods of one machine share its network, and may so use one port each. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

typedef int (*bind_call)(int, const struct sockaddr *, socklen_t);

int bind(int socket, const struct sockaddr *wanted, socklen_t length) {
  bind_call next = (bind_call)dlsym(RTLD_NEXT, "bind");
  const char *text = getenv("POD_IP");
  struct in_addr pod;
  if (text == NULL || inet_pton(AF_INET, text, &pod) != 1) return next(socket, wanted, length);
  if (wanted->sa_family == AF_INET && length >= sizeof(struct sockaddr_in)) {
    struct sockaddr_in own;
    memcpy(&own, wanted, sizeof own);
    if (own.sin_addr.s_addr == htonl(INADDR_ANY)) own.sin_addr = pod;
    return next(socket, (struct sockaddr *)&own, sizeof own);
  }
  if (wanted->sa_family == AF_INET6 && length >= sizeof(struct sockaddr_in6)) {
    struct sockaddr_in6 own;
    memcpy(&own, wanted, sizeof own);
    if (IN6_IS_ADDR_UNSPECIFIED(&own.sin6_addr)) { /* as ::ffff:a.b.c.d, the IPv4 address */
      memset(own.sin6_addr.s6_addr + 10, 0xff, 2);
      memcpy(own.sin6_addr.s6_addr + 12, &pod, 4);
    }
    return next(socket, (struct sockaddr *)&own, sizeof own);
  }
  return next(socket, wanted, length);
}
